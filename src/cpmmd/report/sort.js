"use strict";
// Tables sort by a button in each column header; without scripts they are plain tables.
(() => {
  const status = document.getElementById("sort-status");
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (!("value" in cell.dataset)) return cell.textContent.trim();
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  const sort = (table, header) => {
    const column = header.cellIndex;
    const descending = header.getAttribute("aria-sort") === "ascending" ||
      (!header.hasAttribute("aria-sort") && header.dataset.first === "descending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => ({ row, key: keyOf(row, column) }));
    rows.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null); // missing values stay last
      return descending ? compare(b.key, a.key) : compare(a.key, b.key);
    });
    body.append(...rows.map((item) => item.row));
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    status.textContent = `Sorted by ${header.textContent.trim()}, ${descending ? "descending" : "ascending"}.`;
  };
  for (const table of document.querySelectorAll("table")) {
    if (table.tBodies[0].rows.length < 2) continue;
    for (const header of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, header));
    }
  }
  // All columns can be searched by name or by how they differ; without scripts they are lists.
  for (const block of document.querySelectorAll(".columns")) {
    const field = block.querySelector(".search");
    if (!field) continue;
    const [input, answer] = [field.querySelector("input"), field.querySelector("[role=status]")];
    const others = block.querySelector("details");
    field.hidden = false;
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLocaleLowerCase();
      let found = 0;
      for (const item of block.querySelectorAll(".column")) {
        item.hidden = !item.dataset.name.toLocaleLowerCase().includes(wanted);
        if (!item.hidden) found += 1;
      }
      if (wanted) others.open = true;
      answer.textContent = wanted ? `${found} found` : "";
    });
  }
  // A picture of batches that is wider than the screen shows the latest ones first.
  for (const canvas of document.querySelectorAll(".wide .canvas")) canvas.scrollLeft = canvas.scrollWidth;
})();
