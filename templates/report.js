"use strict";
/* The page is complete without this script. It adds reading values off the timeline, sorting, filtering and zooming. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const size = (bytes) => {
    const units = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
    for (const [unit, scale] of units) {
      if (bytes >= scale * 0.9995) {
        const value = bytes / scale;
        return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
      }
    }
    return `${bytes} B`;
  };
  const duration = (seconds) => {
    const span = Math.abs(seconds);
    return span < 0.9995 ? `${(span * 1e3).toPrecision(3)} ms` : `${span < 99.95 ? span.toPrecision(3) : Math.round(span)} s`;
  };
  const when = (x) => {
    if (x === undefined) return "";
    return x === 0 ? `at ${data.zero}` : `${duration(x)} ${x < 0 ? "before" : "after"} ${data.zero}`;
  };
  const nearest = (values, wanted) => {
    let low = 0, high = values.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (values[middle] <= wanted) low = middle; else high = middle;
    }
    return high >= 0 && wanted - values[low] > values[high] - wanted ? high : low;
  };
  const siteLink = (row) => {
    const label = data.labels[row];
    return document.getElementById(`site-${row}`) ? make("a", label, {href: `#site-${row}`}) : make("span", label);
  };

  const timelines = () => {
    if (!data.figures) return;
    const moments = data.moments.map((moment) => moment.x);
    for (const holder of document.querySelectorAll("figure.timeline")) {
      const name = holder.dataset.figure;
      const points = typeof data.figures[name] === "string" ? data.figures[data.figures[name]] : data.figures[name];
      // A device beside the main one has values of its own, and no sites to list.
      const beside = points.box !== undefined, times = points.time === true ? points.x : points.time || [];
      const [width, , left, right, top, bottom] = beside ? points.box : data.box;
      const svg = document.getElementById(name), readout = holder.querySelector(".readout");
      const first = points.x[0], span = points.x[points.x.length - 1] - first || 1;
      const cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
      cursor.setAttribute("class", "cursor");
      cursor.setAttribute("y1", top);
      cursor.setAttribute("y2", bottom);
      let at = points.x.length - 1;
      const show = (index) => {
        at = Math.max(0, Math.min(points.x.length - 1, index));
        const position = left + ((points.x[at] - first) / span) * (right - left);
        cursor.setAttribute("x1", position);
        cursor.setAttribute("x2", position);
        if (!cursor.parentNode) svg.append(cursor);
        const allocated = points.allocated[at] * 1024, reserved = points.reserved[at] * 1024;
        const parts = [when(times[at]), `entry ${points.entry[at].toLocaleString("en")}`, `allocated ${size(allocated)}`,
          `active ${size(allocated + points.active[at] * 1024)}`, `reserved ${size(reserved)}`].filter(Boolean);
        const moment = beside ? undefined : data.moments[nearest(moments, points.x[at])];
        const sites = moment ? moment.sites.slice(0, 3).map(([row, bytes]) => `${data.labels[row]} ${size(bytes)}`) : [];
        readout.textContent = parts.join(" · ") + (sites.length ? ` — largest sites nearby: ${sites.join("; ")}` : "");
      };
      const pick = (event) => {
        const box = svg.getBoundingClientRect();
        const position = ((event.clientX - box.left) / box.width) * width;
        return nearest(points.x, first + ((position - left) / (right - left)) * span);
      };
      svg.addEventListener("pointermove", (event) => show(pick(event)));
      svg.addEventListener("click", (event) => { show(pick(event)); if (!beside) live(points.x[at], holder); });
      const region = holder.querySelector(".scroll");
      region.addEventListener("keydown", (event) => {
        const last = points.x.length - 1;
        const wanted = {ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 20, PageDown: at + 20, Home: 0, End: last}[event.key];
        if (wanted !== undefined) { event.preventDefault(); show(wanted); }
        if (event.key === "Enter" && !beside) { live(points.x[at], holder); panel.focus(); }
      });
      region.scrollLeft = region.scrollWidth; // on a narrow screen, the end is what matters
      readout.textContent = beside ? "Point at the figure or use the arrow keys to read values."
        : "Point at the figure or use the arrow keys to read values; click or press Enter to list what was live there.";
    }
    const panel = document.getElementById("moment");
    const live = (x, holder) => {
      const moment = data.moments[nearest(moments, x)];
      if (!moment) return;
      panel.replaceChildren(make("h3", `Live ${[when(moment.time), `at entry ${moment.entry.toLocaleString("en")}`].filter(Boolean).join(", ")}`));
      const list = make("ol");
      for (const [row, bytes] of moment.sites) {
        const item = make("li", `${size(bytes)} `);
        item.append(siteLink(row));
        list.append(item);
      }
      panel.append(list, make("p", `The largest sites at the nearest of the ${data.moments.length} instants stored in this page.`, {class: "quiet"}));
      panel.hidden = false;
      holder.append(panel);
    };
  };

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
      const rows = [...table.tBodies[0].rows];
      if (rows.length <= 15) { table.classList.add("all"); continue; }
      const tools = make("div", undefined, {class: "tools"});
      const input = make("input", undefined, {type: "search", placeholder: "Filter rows", "aria-label": "Filter the rows of the table below"});
      const button = make("button", `Show all ${rows.length} rows`, {type: "button", "aria-expanded": "false"});
      const open = () => { table.classList.add("all"); button.setAttribute("aria-expanded", "true"); button.hidden = true; };
      button.addEventListener("click", open);
      input.addEventListener("input", () => {
        open();
        const wanted = input.value.trim().toLowerCase();
        for (const row of rows) row.classList.toggle("off", !row.textContent.toLowerCase().includes(wanted));
      });
      tools.append(input, button);
      table.parentNode.before(tools);
    }
  };

  const flame = () => {
    const graph = document.getElementById("flame");
    if (!graph) return;
    const boxes = [...graph.querySelectorAll(".box")];
    const readout = document.querySelector("#flame-figure .readout");
    const from = (box) => Number(box.dataset.x), width = (box) => Number(box.dataset.w);
    const row = (box) => Number(box.getAttribute("y")), visible = (box) => !box.classList.contains("out");
    const place = (left, whole) => {
      for (const box of boxes) {
        const start = Math.max(from(box), left), end = Math.min(from(box) + width(box), left + whole);
        const share = (end - start) / whole, inside = share > 1e-6;
        box.classList.toggle("out", !inside);
        if (inside) {
          box.setAttribute("x", `${+(((start - left) / whole) * 100).toFixed(3)}%`);
          box.setAttribute("width", `${+(share * 100).toFixed(3)}%`);
          box.classList.toggle("thin", share < data.thin);
        }
      }
    };
    let zoomed = null, here = null;
    const toggle = (box) => {
      zoomed = zoomed === box ? null : box;
      if (zoomed) place(from(zoomed), width(zoomed)); else place(0, 100);
    };
    const read = (box) => { readout.textContent = box.querySelector("title").textContent; };
    const stand = (box) => {
      if (!box) return;
      if (here) here.classList.remove("here");
      here = box;
      here.classList.add("here");
      graph.append(here); // drawn last, so that its outline is whole
      read(here);
    };
    /* The neighbour of `box` that is `rows` below it, or beside it. */
    const beside = (box, rows, to) => {
      const there = boxes.filter((one) => one !== box && visible(one) && row(one) === row(box) + rows * data.row);
      const shared = (one) => Math.min(from(one) + width(one), from(box) + width(box)) - Math.max(from(one), from(box));
      if (rows) return there.filter((one) => shared(one) > 0).sort((a, b) => shared(b) - shared(a))[0];
      const side = there.filter((one) => (to < 0 ? from(one) < from(box) : from(one) > from(box)));
      return side.sort((a, b) => Math.abs(from(a) - from(box)) - Math.abs(from(b) - from(box)))[0];
    };
    graph.addEventListener("click", (event) => {
      const box = event.target.closest(".box");
      if (box) toggle(box);
    });
    graph.addEventListener("pointerover", (event) => {
      const box = event.target.closest(".box");
      if (box) read(box);
    });
    graph.parentNode.addEventListener("keydown", (event) => {
      const move = {ArrowDown: [1], ArrowUp: [-1], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
      if (move) { event.preventDefault(); stand(here ? beside(here, ...move) : boxes[0]); }
      if (event.key === "Enter" && here) toggle(here);
      if (event.key === "Escape" && zoomed) toggle(zoomed);
    });
  };

  const links = () => {
    const reveal = () => {
      const target = location.hash.startsWith("#site-") ? document.getElementById(location.hash.slice(1)) : null;
      if (!target) return;
      target.closest("table").classList.add("all");
      const details = target.querySelector("details");
      if (details) details.open = true;
      target.scrollIntoView({block: "center"});
    };
    addEventListener("hashchange", reveal);
    reveal();
  };

  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  timelines();
  sorting();
  filtering();
  flame();
  links();
  document.documentElement.dataset.ready = "true";
  performance.mark("ready");
})();
