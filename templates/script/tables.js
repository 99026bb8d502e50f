/* Rows of a long table that are shown at once, and of one of which few say enough; report.css hides the others. */
const FIRST_ROWS = 6, FEW_ROWS = 4;
const sorting = () => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", head.textContent, {type: "button"});
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const numeric = head.classList.contains("n");
        const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "descending" : numeric;
        const key = (row) => {
          const cell = row.cells[column];
          return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent.trim().toLowerCase();
        };
        const rows = [...body.rows].map((row) => [key(row), row]);
        rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
};
const filtering = () => {
  for (const table of document.querySelectorAll("table.long")) {
    const rows = [...table.tBodies[0].rows].filter((row) => !row.classList.contains("later"));
    if (rows.length <= (table.classList.contains("few") ? FEW_ROWS : FIRST_ROWS)) { table.classList.add("all"); continue; }
    const tools = make("div", undefined, {class: "tools"});
    const input = make("input", undefined, {type: "search", placeholder: "Filter", "aria-label": "Filter the rows of the table below"});
    const button = make("button", `All ${rows.length} rows`, {type: "button", "aria-expanded": "false"});
    const none = make("span", "", {class: "quiet", role: "status"});
    const open = () => { table.classList.add("all"); button.setAttribute("aria-expanded", "true"); button.hidden = true; };
    button.addEventListener("click", open);
    input.addEventListener("input", () => {
      open();
      const wanted = input.value.trim().toLowerCase();
      let found = 0;
      for (const row of rows) {
        const fits = row.textContent.toLowerCase().includes(wanted);
        row.classList.toggle("off", !fits);
        found += fits;
      }
      none.textContent = found ? "" : "No row matches.";
    });
    if (rows.length > FIRST_ROWS) tools.append(input);
    tools.append(button, none);
    table.parentNode.before(tools);
  }
};
/* Says where a region can be scrolled sideways: a bar is not seen on a phone. */
const hinting = () => {
  const look = () => {
    for (const region of document.querySelectorAll(".scroll")) region.classList.toggle("wider", region.scrollWidth > region.clientWidth + 1);
  };
  addEventListener("resize", look);
  document.addEventListener("toggle", look, true);
  look();
};
