"""Containers that are neither arrays nor data frames: each becomes one of those, or columns by name, without its package.

Packages are recognised by the module of a type and by protocols (Arrow's, DLPack), so that none of them is imported here unless
the data come from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from importlib import import_module
from typing import Any

import numpy as np

from cpmmd.core.text import bytes_in_words, pluralize
from cpmmd.data.numbers import Values
from cpmmd.errors import InputError, name_some

DENSE_LIMIT = 2**30  # bytes of a sparse matrix as an ordinary one
TOO_SPARSE = (
    "A sparse sample is compared as an ordinary matrix, of 1 GiB at most. {Sample} would take {size} ({rows} x {columns}). Pass "
    "fewer columns, such as TfidfVectorizer(max_features=2000), or the text itself with preprocess=make_pipeline("
    "TfidfVectorizer(), TruncatedSVD(100))."
)
UNEQUAL = "Columns must have equally many values. {Sample} has {lengths}; correct the shorter ones."
DEVICE = "{Sample} is {got} that could not be copied to memory as numbers ({reason}). Pass np.asarray(data) of it."
DIMENSIONS = (
    "Variables of a data set must have one first dimension, that of the rows. {Sample} has {got}. Choose the variables, or pass "
    "data.to_dataframe()."
)
# What is not taken, by the package and the type, and the line that converts it.
CONVERT = {
    ("datasets", "DatasetDict"): "one split of it, such as data['train']",
    ("datasets", "IterableDataset"): "datasets.Dataset.from_list(list(data.take(10_000)))",
    ("datasets", "IterableDatasetDict"): "datasets.Dataset.from_list(list(data['train'].take(10_000)))",
    ("torch", "DataLoader"): "torch.cat([batch for batch in data])",
    ("anndata", "AnnData"): "data.to_df()",
    ("PIL", "Image"): "np.stack([np.asarray(image) for image in images])",
    ("networkx", "Graph"): "a kernel matrix of the graphs to kernel_matrix_test",
}
NOT_TAKEN = "{Sample} must be rows: an array, a data frame, columns by name or records. Got {got}; pass {line}."


def unwrap(data: object, name: str) -> object:
    """Return what a container holds as an array, a frame or columns by name; anything else as it came."""
    kind = type(data)
    package = kind.__module__.split(".")[0]
    line = CONVERT.get((package, kind.__name__))
    if line is None and isinstance(data, Set):
        line = "a list of its rows, sorted(data)"
    if line is None and hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "__array__"):
        line = _line_for_rows(data)
    if line is not None:
        raise InputError(NOT_TAKEN, sample=name, got=kind.__name__, line=line)
    if isinstance(data, np.ndarray):
        return data if data.dtype.names is None else {label: data[label] for label in data.dtype.names}
    if package == "xarray":
        return _from_xarray(data, name)
    if hasattr(data, "with_format") and hasattr(data, "features") and hasattr(data, "column_names"):
        return _from_hugging_face(data)
    if hasattr(data, "tocsr") and hasattr(data, "toarray"):  # scipy's sparse matrices and arrays
        return _from_sparse(data, name)
    if hasattr(data, "num_columns") and hasattr(data, "schema") and kind.__name__ == "RecordBatch":
        return import_module("pyarrow").Table.from_batches([data])
    if isinstance(data, Sequence) and len(data):
        if all(isinstance(row, Mapping) for row in data):
            labels = dict.fromkeys(label for row in data for label in row)
            return {label: [row.get(label) for row in data] for label in labels}
        if all(type(part).__name__ == "RecordBatch" for part in data):
            return import_module("pyarrow").Table.from_batches(data)
        if all(hasattr(row, "_fields") for row in data):  # named tuples
            return dict(zip(data[0]._fields, zip(*data, strict=True), strict=True))
    if hasattr(data, "__dlpack__") and not hasattr(data, "detach"):
        return _from_device(data, name)
    return data


def _line_for_rows(data: Any) -> str | None:
    """Return how to convert data that have rows one by one, by the first of them; None where nothing is wrong with it."""
    if any(base.__module__.startswith("torch.utils.data") for base in type(data).__mro__):
        return "torch.stack([row for row, *_ in data])"
    first = data[0] if isinstance(data, list | tuple) and data else None
    if type(first).__module__.startswith("PIL."):
        return CONVERT["PIL", "Image"]
    if hasattr(type(first), "__dataclass_fields__"):
        return "[dataclasses.asdict(row) for row in data]"
    return None


def _from_sparse(data: Any, name: str) -> Values:
    rows, columns = data.shape
    if (size := 8 * rows * columns) > DENSE_LIMIT:
        raise InputError(TOO_SPARSE, sample=name, size=bytes_in_words(size), rows=rows, columns=columns)
    return np.asarray(data.toarray())


def _from_hugging_face(data: Any) -> object:
    """Return the Arrow table of the rows that were selected, with the names of class labels."""
    table = data.with_format("arrow")[:]
    for label, feature in dict(data.features).items():
        names = getattr(feature, "names", None)
        if names and hasattr(feature, "int2str"):
            codes = table.column(label).to_pylist()
            words = [None if code is None or code < 0 else names[code] for code in codes]
            table = table.set_column(table.column_names.index(label), label, [words])
    return table


def _from_xarray(data: Any, name: str) -> object:
    """Return variables by name, whose rows are their first dimension; a single array as it is."""
    if not hasattr(data, "data_vars"):
        return np.asarray(data)
    variables = {str(label): variable for label, variable in data.data_vars.items()}
    first = {str(variable.dims[0]) if variable.dims else "none" for variable in variables.values()}
    if len(first) != 1 or "none" in first:
        raise InputError(DIMENSIONS, sample=name, got=name_some(sorted(first)))
    return {label: np.asarray(variable) for label, variable in variables.items()}


def _from_device(data: Any, name: str) -> Values:
    """Return an array of another package as numpy's, by DLPack, copied from where it is."""
    try:
        try:
            found = np.from_dlpack(data)
        except (BufferError, RuntimeError, TypeError, ValueError):  # on another device, or of a type that DLPack has not
            found = np.asarray(data.get() if hasattr(data, "get") else data)
            if found.ndim == 0:
                raise
        return found.astype(np.float64) if found.dtype.kind == "V" else found  # bfloat16 and its like
    except Exception as error:  # every package has its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(DEVICE, sample=name, got=type(data).__name__, reason=reason) from error


def column_arrays(data: Mapping[Any, object], name: str) -> dict[str, Values]:
    """Return columns by name as arrays of equal length, a row of numbers for each row where a column holds vectors."""
    columns = {str(label): _as_array(values) for label, values in data.items()}
    lengths = {label: len(values) if values.ndim else None for label, values in columns.items()}
    if len(set(lengths.values())) > 1 or None in lengths.values():
        listed = [
            f"{label!r}: {'a single value' if rows is None else pluralize(rows, 'value')}" for label, rows in lengths.items()
        ]
        raise InputError(UNEQUAL, sample=name, lengths=", ".join(listed[:8]))
    return columns


def _as_array(values: object) -> Values:
    """Return the values of a column; as they came, objects, where numpy would make text of numbers or refuse."""
    if isinstance(values, np.ma.MaskedArray):
        objects = np.array(np.ma.getdata(values), dtype=object)
        objects[np.ma.getmaskarray(values)] = None
        return objects
    if isinstance(values, str) or not hasattr(values, "__len__"):
        return np.empty(())
    if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray) and not hasattr(values, "detach"):
        return _from_device(values, "column")
    if hasattr(values, "detach"):  # a torch tensor
        return np.asarray(values.detach().cpu())
    if hasattr(values, "__array__"):
        return np.asarray(values)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufmM":
            return array
    except ValueError:  # rows of different lengths
        pass
    listed = list(values)  # type: ignore[call-overload]
    objects = np.empty(len(listed), dtype=object)
    objects[:] = listed
    return objects
