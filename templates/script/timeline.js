/* Unpacks what timeline_data.py packed: for each instant its entry, time, pending and reserved bytes, and for each
   kind of live bytes a column. */
const unpacked = (spec) => {
  const text = atob(spec.packed);
  let place = 0;
  const next = () => {
    let value = 0, scale = 1, byte;
    do { byte = text.charCodeAt(place++); value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
    return value;
  };
  const signed = () => { const value = next(); return value % 2 ? -(value + 1) / 2 : value / 2; };
  const column = () => new Float64Array(spec.count);
  const entry = column(), time = column(), pending = column(), reserved = column(), allocated = column();
  const live = spec.kinds.map(column), now = spec.kinds.map(() => 0);
  let at = 0, clock = spec.start, waits = 0, held = 0, sum = 0;
  for (let row = 0; row < spec.count; row++) {
    entry[row] = at += next();
    if (spec.timed) time[row] = (clock += next()) / 1e6;
    for (let changes = next(); changes > 0; changes--) {
      const kind = next(), change = signed() * spec.unit;
      now[kind] += change;
      sum += change;
    }
    pending[row] = waits += signed() * spec.unit;
    reserved[row] = held += signed() * spec.unit;
    allocated[row] = sum;
    for (let kind = 0; kind < live.length; kind++) live[kind][row] = now[kind];
  }
  return {entry, time, pending, reserved, allocated, live, x: spec.seconds ? time : entry};
};
/* The bands of a view, from below: words, class of their colour, and bytes at each instant. */
const bandsOf = (spec, columns, mode) => {
  const place = {category: 0, site: 1, phase: 2}[mode];
  const others = spec.sites.length - 1;
  const made = new Map();
  spec.kinds.forEach((kind, number) => {
    const key = kind[place];
    if (!made.has(key)) {
      const [colour, label] = mode === "category" ? [`k-${spec.categories[key][0]}`, spec.categories[key][1]]
        : mode === "phase" ? [spec.phases[key][0], spec.phases[key][1]]
          : [key < spec.coloured ? `k-s-${key}` : "k-s-other", spec.sites[key]];
      made.set(key, {key, colour, label, bytes: new Float64Array(spec.count), site: mode === "site" && key < others});
    }
    const bytes = made.get(key).bytes, live = columns.live[number];
    for (let row = 0; row < spec.count; row++) bytes[row] += live[row];
  });
  const rank = (band) => (mode === "site" && !band.site ? -1 : band.key);
  return [...made.values()].sort((a, b) => rank(a) - rank(b));
};
const ticks = (low, high, most) => {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= rough) * power;
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) found.push(tick);
  return found;
};
/* The last instant that is not after `wanted`. */
const before = (values, wanted) => {
  let low = 0, high = values.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (values[middle] <= wanted) low = middle; else high = middle - 1;
  }
  return low;
};

class Timeline {
  constructor(holder, spec) {
    Object.assign(this, {holder, spec, mode: "category", cached: {}, columns: unpacked(spec)});
    [this.width, , this.left, this.right, this.top, this.bottom] = spec.box;
    this.svg = holder.querySelector("svg.fig");
    this.readout = holder.querySelector(".readout");
    this.panel = holder.querySelector(".moment");
    this.legend = holder.querySelector(".bands");
    this.static = [...this.svg.children].filter((one) => one.tagName === "g");
    this.layer = draw("g", {class: "live"});
    this.cursor = draw("line", {class: "cursor off", y1: this.top, y2: this.bottom});
    this.brush = draw("rect", {class: "brush", y: this.top, height: this.bottom - this.top, width: 0});
    this.svg.append(this.layer, this.brush, this.cursor);
    this.last = spec.count - 1;
    this.at = this.last;
    [this.from, this.to] = this.whole = [this.columns.x[0], this.columns.x[this.last]];
    this.listen();
  }
  bands(mode = this.mode) { return (this.cached[mode] ||= bandsOf(this.spec, this.columns, mode)); }
  place(x) { return this.left + ((x - this.from) / (this.to - this.from || 1)) * (this.right - this.left); }
  when(row) {
    if (!this.spec.timed) return "";
    const time = this.columns.time[row];
    return time === 0 ? `at ${this.spec.zero}` : `${duration(time)} ${time < 0 ? "before" : "after"} ${this.spec.zero}`;
  }
  where(row) { return [this.when(row), `entry ${count(this.columns.entry[row])}`].filter(Boolean).join(" · "); }

  /* `height` in bytes, where the pointer says one: the band there is named first. */
  show(row, height) {
    const {allocated, pending, reserved} = this.columns;
    this.at = row = Math.max(0, Math.min(this.last, row));
    const x = this.place(this.columns.x[row]);
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, x);
    this.cursor.classList.toggle("off", x < this.left - 1 || x > this.right + 1);
    const active = pending[row] ? ` · active ${size(allocated[row] + pending[row])}` : "";
    const told = `allocated ${size(allocated[row])}${active} · reserved ${size(reserved[row])} · ${this.where(row)}`;
    const band = height === undefined ? undefined : this.bandAt(row, height);
    this.readout.replaceChildren();
    if (band) this.readout.append(make("strong", `${band[0]} ${size(band[1])}`), " · ");
    this.readout.append(told);
  }
  bandAt(row, height) {
    let floor = 0;
    for (const band of this.bands()) {
      floor += band.bytes[row];
      if (height < floor) return [band.label, band.bytes[row]];
    }
    const {allocated, pending, reserved} = this.columns, free = reserved[row] - allocated[row] - pending[row];
    return height < reserved[row] && free > 0 ? ["free inside segments", free] : undefined;
  }

  render() {
    const isStatic = this.mode === "category" && this.from === this.whole[0] && this.to === this.whole[1];
    for (const one of this.static) one.classList.toggle("off", !isStatic);
    this.layer.replaceChildren();
    this.paintLegend();
    const first = before(this.columns.x, this.from), end = before(this.columns.x, this.to);
    this.highest = isStatic ? undefined : this.paint(first, end);
    this.show(this.at);
  }
  paint(first, end) {
    const {x, reserved} = this.columns, {spec, layer} = this;
    let highest = 1;
    for (let row = first; row <= end; row++) highest = Math.max(highest, reserved[row], this.columns.allocated[row]);
    const limit = spec.limit !== null && spec.limit < 1.6 * highest ? spec.limit : null;
    const top = Math.max(highest, limit || 0) * 1.06;
    const scale = (bytes) => this.bottom - (bytes / top) * (this.bottom - this.top);
    this.axes(top, scale);
    const floor = new Float64Array(spec.count), paths = [];
    for (const band of this.bands()) {
      let any = false;
      for (let row = first; row <= end; row++) { floor[row] += band.bytes[row]; any ||= band.bytes[row] > 0; }
      if (any) paths.unshift(draw("path", {class: band.colour, d: `${this.stairs(floor, first, end, scale)}V${this.bottom}H${this.left}z`}));
    }
    layer.append(...paths, draw("path", {class: "l-reserved none", d: this.stairs(reserved, first, end, scale)}));
    if (limit !== null) layer.append(draw("line", {class: "l-limit", x1: this.left, x2: this.right, y1: scale(limit), y2: scale(limit)}));
    let labelled = false;
    for (const entry of [...spec.ooms].reverse()) {
      const at = x[before(this.columns.entry, entry)];
      if (at < this.from || at > this.to) continue;
      const here = this.place(at);
      layer.append(draw("line", {class: "l-oom", x1: here, x2: here, y1: this.top, y2: this.bottom}));
      if (!labelled) layer.append(draw("text", {class: here > this.width / 2 ? "tick t-oom end" : "tick t-oom", x: here, y: this.top - 4}, "OOM"));
      labelled = true;
    }
    return top;
  }
  stairs(values, first, end, scale) {
    const x = this.columns.x, start = Math.max(this.left, this.place(x[first])).toFixed(1);
    const parts = [`M${start} ${scale(values[first]).toFixed(1)}`];
    for (let row = first + 1; row <= end; row++) {
      if (values[row] !== values[row - 1]) parts.push(`H${this.place(x[row]).toFixed(1)}V${scale(values[row]).toFixed(1)}`);
    }
    return `${parts.join("")}H${this.right}`;
  }
  axes(top, scale) {
    const {spec, layer} = this, [unit, step] = UNITS.find(([, one]) => top >= one) || ["B", 1];
    const starts = spec.steps.map(([entry]) => this.columns.x[before(this.columns.entry, entry)]);
    starts.forEach((start, number) => {
      const stop = number + 1 < starts.length ? starts[number + 1] : this.whole[1];
      const [low, high] = [Math.max(start, this.from), Math.min(stop, this.to)];
      if (number % 2 === 0 && high > low && starts.length <= 80) {
        layer.append(draw("rect", {class: "k-band", x: this.place(low), width: this.place(high) - this.place(low), y: this.top, height: this.bottom - this.top}));
      }
    });
    for (const tick of ticks(0, top / step, 5)) {
      const y = scale(tick * step);
      layer.append(draw("line", {class: "grid", x1: this.left, x2: this.right, y1: y, y2: y}),
        draw("text", {class: "tick end", x: this.left - 5, y: y + 3}, tick ? `${+tick.toPrecision(4)} ${unit}` : "0"));
    }
    const span = this.to - this.from;
    const [rate, name] = !spec.seconds ? [1, "trace entry"] : span < 0.002 ? [1e6, "microseconds"] : span < 2 ? [1e3, "milliseconds"]
      : span < 300 ? [1, "seconds"] : [1 / 60, "minutes"];
    for (const tick of ticks(this.from * rate, this.to * rate, 8)) {
      layer.append(draw("text", {class: "tick middle", x: this.place(tick / rate), y: this.bottom + 14}, (+tick.toPrecision(6)).toLocaleString("en")));
    }
    const words = spec.seconds ? `${name} relative to ${spec.zero}` : name;
    layer.append(draw("text", {class: "tick middle", x: (this.left + this.right) / 2, y: this.bottom + 31}, words));
  }
  paintLegend() {
    if (!this.legend) return;
    const shown = this.bands().filter((band) => band.bytes.some((bytes) => bytes > 0) && band.colour !== "k-s-other");
    const others = this.bands().find((band) => band.colour === "k-s-other");
    if (others) shown.push({colour: others.colour, label: this.spec.sites.at(-1)});
    this.legend.replaceChildren(...shown.map((band) => {
      const item = make("li"), key = draw("svg", {class: "key", width: 12, height: 12, "aria-hidden": "true"});
      key.append(draw("rect", {width: 12, height: 12, class: band.colour}));
      item.append(key, this.named(band));
      return item;
    }));
  }
  named(band) {
    const isRow = band.site && document.getElementById(`site-${band.key}`);
    return isRow ? make("a", band.label, {href: `#site-${band.key}`}) : make("span", band.label);
  }

  zoom(from, to) {
    const least = (this.whole[1] - this.whole[0]) * 1e-6;
    [this.from, this.to] = to - from > least ? [Math.max(from, this.whole[0]), Math.min(to, this.whole[1])] : this.whole;
    this.render();
  }
  instant(row) {
    const total = this.columns.allocated[row];
    this.tell(`${size(total)} allocated ${this.where(row).replace(" · ", ", ")}`, (bytes) => [bytes[row], size(bytes[row])]);
  }
  range(first, end) {
    const {allocated} = this.columns;
    let peak = first;
    for (let row = first; row <= end; row++) if (allocated[row] > allocated[peak]) peak = row;
    const words = `From ${this.where(first)} to ${this.where(end)}: ${size(allocated[first])} to ${size(allocated[end])}, `
      + `at most ${size(allocated[peak])} (entry ${count(this.columns.entry[peak])}). Change:`;
    this.tell(words, (bytes) => [bytes[end] - bytes[first], `${bytes[end] > bytes[first] ? "+" : ""}${size(bytes[end] - bytes[first])}`]);
  }
  /* What the selection holds by category, by site and by phase, below the figure; `read` gives a number and its words. */
  tell(words, read) {
    if (!this.panel) return;
    const lists = ["site", "category", "phase"].map((mode) => {
      const block = make("div"), list = make("ol");
      const rows = this.bands(mode).map((band) => [band, ...read(band.bytes)]).filter(([, value]) => value !== 0);
      rows.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
      for (const [band, , text] of rows.slice(0, 8)) {
        const item = make("li");
        item.append(make("strong", text), " ", this.named(band));
        list.append(item);
      }
      block.append(make("p", `By ${mode}`, {class: "quiet"}), rows.length ? list : make("p", "nothing"));
      return block;
    });
    const columns = make("div", undefined, {class: "three"});
    columns.append(...lists);
    this.panel.replaceChildren(make("p", words, {class: "lead"}), columns);
    this.panel.hidden = false;
    this.panel.scrollIntoView({block: "nearest"});
  }

  listen() {
    const point = (event) => {
      const box = this.svg.getBoundingClientRect(), scale = this.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      return {x: Math.max(this.left, Math.min(this.right, x)), y};
    };
    const value = (x) => this.from + ((x - this.left) / (this.right - this.left)) * (this.to - this.from);
    const row = (x) => before(this.columns.x, value(x));
    let start;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch") return;
      start = point(event).x;
      event.preventDefault();
    });
    this.svg.addEventListener("pointermove", (event) => {
      const {x, y} = point(event);
      this.show(row(x), this.bytesAt(y));
      if (start === undefined) return;
      this.brush.setAttribute("x", Math.min(start, x));
      this.brush.setAttribute("width", Math.abs(x - start));
    });
    addEventListener("pointerup", (event) => {
      if (start === undefined) return;
      const ends = [start, point(event).x].sort((a, b) => a - b);
      start = undefined;
      this.brush.setAttribute("width", 0);
      if (ends[1] - ends[0] < 6) return;
      this.dragged = true;
      const [first, end] = ends.map(row);
      this.zoom(...ends.map(value));
      this.range(first, end);
    });
    this.svg.addEventListener("click", (event) => {
      if (this.dragged) { this.dragged = false; return; }
      this.show(row(point(event).x), this.bytesAt(point(event).y));
      this.instant(this.at);
    });
    this.svg.addEventListener("dblclick", () => this.zoom(...this.whole));
    const region = this.holder.querySelector(".scroll");
    region.addEventListener("keydown", (event) => {
      const wanted = {ArrowLeft: this.at - 1, ArrowRight: this.at + 1, PageUp: this.at - 20, PageDown: this.at + 20, Home: 0, End: this.last}[event.key];
      if (wanted !== undefined) { event.preventDefault(); this.show(wanted); }
      if (event.key === "Enter" && this.panel) { this.instant(this.at); this.panel.focus(); }
      if (event.key === "Escape") this.zoom(...this.whole);
    });
    region.scrollLeft = region.scrollWidth; // on a narrow screen, the end is what matters
    this.readout.textContent = this.panel ? "Point to read exact values; click to list what was live; drag to zoom." : "Point to read exact values.";
    for (const button of this.holder.querySelectorAll("button[data-mode]")) {
      button.addEventListener("click", () => {
        this.mode = button.dataset.mode;
        for (const one of this.holder.querySelectorAll("button[data-mode]")) one.setAttribute("aria-pressed", String(one === button));
        this.render();
      });
    }
    for (const button of this.holder.querySelectorAll("button[data-zoom]")) {
      button.addEventListener("click", () => {
        const ends = button.dataset.zoom === "close" ? this.spec.close.map((entry) => this.columns.x[before(this.columns.entry, entry)]) : this.whole;
        this.zoom(...ends);
      });
    }
  }
  /* Bytes at a height of the figure. What matplotlib drew is read off its highest tick. */
  bytesAt(y) {
    const top = this.highest || Number(this.svg.closest("[data-top]").dataset.top);
    const bytes = ((this.bottom - y) / (this.bottom - this.top)) * top;
    return bytes >= 0 && bytes <= top ? bytes : undefined;
  }
}
const timelines = () => {
  for (const holder of document.querySelectorAll("figure.timeline")) {
    const spec = data.figures && data.figures[holder.dataset.figure];
    if (spec) new Timeline(holder, spec);
  }
};
