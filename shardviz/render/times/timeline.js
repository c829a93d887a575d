"use strict";
const programs = JSON.parse(document.getElementById("data").textContent);
const charts = document.getElementById("charts");
const tip = document.getElementById("tip");
const detail = document.getElementById("detail");
const dark = matchMedia("(prefers-color-scheme: dark)");
const still = [16, 12];
const NAMES = 120, TICKS = 26, BRACKET = 22, ROW = 24, GAP = 7, CURVE = 78, FOOT = 12, HEAD = 30;
const limit = Math.max(...programs.map((program) => program.end), 1);
let first = 0, last = limit;
let chosen = null, wanted = 0;

function seconds(pico) {
  const scales = [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3], ["ps", 1]];
  const [unit, size] = scales.find(([, size]) => pico >= size * 0.9995) || ["s", 1];
  const value = pico / size;
  return `${value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3)} ${unit}`;
}
function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let place = 0;
  while (count >= 1023.5 && place < units.length - 1) { count /= 1024; place += 1; }
  return `${count >= 100 ? Math.round(count) : Number(count.toPrecision(3))} ${units[place]}`;
}
function below(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) { low = middle + 1; } else { high = middle; }
  }
  return low;
}
function ticks(width) {
  const least = (last - first) / width * 110;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= least);
  const scales = [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3], ["ps", 1]];
  let place = scales.findIndex(([, size]) => last >= size);
  const decimals = () => Math.max(0, Math.ceil(-Math.log10(step / scales[place][1]) - 1e-9));
  while (decimals() > 4 && place < scales.length - 1) { place += 1; }
  const [unit, size] = scales[place];
  const digits = { minimumFractionDigits: decimals(), maximumFractionDigits: decimals() };
  const found = [];
  for (let n = Math.ceil(first / step); n * step <= last; n += 1) {
    found.push([n * step, n ? `${(n * step / size).toLocaleString("en", digits)} ${unit}` : "0"]);
  }
  return found;
}

class Chart {
  constructor(program, number) {
    this.program = program;
    this.number = number;
    this.canvas = document.createElement("canvas");
    charts.append(this.canvas);
    const { rows, ops, lanes, spans } = program;
    this.rows = rows.map((lane) => ({ lane, ops: [], starts: [], ends: [] }));
    ops.row.forEach((row, op) => {
      if (row >= 0) {
        this.rows[row].ops.push(op);
        this.rows[row].starts.push(ops.start[op]);
        this.rows[row].ends.push(ops.end[op]);
      }
    });
    this.depth = Math.max(-1, ...spans.map((span) => span[5])) + 1;
    let y = HEAD + TICKS + this.depth * BRACKET;
    this.rows.forEach((row, place) => {
      y += place && rows[place - 1] === row.lane ? 0 : GAP;
      row.y = y;
      y += ROW;
    });
    this.curve = y + 2 * GAP;
    this.height = (program.memory ? this.curve + CURVE : y) + FOOT;
    this.wait = lanes.map(() => null);
  }
  text(number) { return this.program.texts[number]; }
  colour(op) {
    const { ops, lanes, compute } = this.program;
    const theme = dark.matches ? "dark" : "light";
    const lane = lanes[ops.lane[op]];
    return lane.kind === "compute" ? compute[theme][ops.matmul[op] ? "matmul" : "compute"] : lane[theme];
  }
  x(time) { return NAMES + (time - first) / (last - first) * (this.width - NAMES - still[0]); }
  hatched(context, colour) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.beginPath();
    for (const shift of [-8, 0, 8]) { pen.moveTo(shift, 8); pen.lineTo(shift + 8, 0); }
    pen.stroke();
    return context.createPattern(tile, "repeat");
  }
  draw() {
    const ratio = devicePixelRatio || 1, { canvas, program } = this;
    this.width = charts.clientWidth;
    canvas.width = this.width * ratio;
    canvas.height = this.height * ratio;
    canvas.style.height = `${this.height}px`;
    const context = canvas.getContext("2d");
    const css = getComputedStyle(document.documentElement);
    const [page, ink, dim, line] = ["--raised", "--text", "--dim", "--line"].map((name) => css.getPropertyValue(name));
    const right = this.width - still[0];
    context.scale(ratio, ratio);
    context.font = "600 14px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = ink;
    context.fillText(program.title, still[1], 18);
    context.font = "12px system-ui, sans-serif";
    for (const [time, label] of ticks(right - NAMES)) {
      const x = Math.round(this.x(time)) + 0.5;
      context.strokeStyle = line;
      context.beginPath();
      context.moveTo(x, HEAD + 4);
      context.lineTo(x, this.height - FOOT);
      context.stroke();
      context.fillStyle = dim;
      if (x + 20 < right) { context.fillText(label, x + 4, HEAD + 12); }
    }
    context.save();
    context.beginPath();
    context.rect(NAMES, 0, right - NAMES, this.height);
    context.clip();
    this.spans(context, page, ink, dim);
    const busy = this.rows.map((row) => this.bars(context, row, page));
    this.waits(context, busy);
    if (program.memory) { this.memory(context, ink, dim, page); }
    if (chosen && chosen.chart === this) { this.arrows(context, ink, chosen.op); }
    context.restore();
    this.rows.forEach((row, place) => {
      if (place && this.rows[place - 1].lane === row.lane) { return; }
      const lane = program.lanes[row.lane];
      context.font = "600 12px system-ui, sans-serif";
      context.textAlign = "right";
      context.fillStyle = lane.kind === "axis" ? lane[dark.matches ? "dark" : "light"] : ink;
      context.fillText(lane.name, NAMES - 10, row.y + ROW / 2);
    });
    if (program.memory) {
      context.fillStyle = ink;
      context.fillText("memory", NAMES - 10, this.curve + CURVE / 2);
    }
    context.textAlign = "left";
  }
  spans(context, page, ink, dim) {
    for (const [name, kind, start, end, count, depth] of this.program.spans) {
      const x = Math.max(this.x(start), NAMES - 4), stop = Math.min(this.x(end), this.width);
      if (stop - x < 3) { continue; }
      const y = HEAD + TICKS + depth * BRACKET;
      context.strokeStyle = dim;
      context.beginPath();
      context.moveTo(x + 0.5, y + 16);
      context.lineTo(x + 0.5, y + 8.5);
      context.lineTo(stop - 0.5, y + 8.5);
      context.lineTo(stop - 0.5, y + 16);
      context.stroke();
      const words = kind === "loop" ? `×${count === null ? "?" : count.toLocaleString("en")} ${name}` : name;
      const wide = context.measureText(words).width;
      if (wide + 20 > stop - x) { continue; }
      const middle = (x + stop - wide) / 2;
      context.fillStyle = page;
      context.fillRect(middle - 5, y, wide + 10, 16);
      context.fillStyle = kind === "loop" ? ink : dim;
      context.fillText(words, middle, y + 9);
    }
  }
  bars(context, row, page) {
    const { ops, texts } = this.program;
    const busy = new Uint8Array(Math.ceil(this.width) + 1);
    let drawn = -1;
    for (let i = below(row.ends, first); i < row.ops.length && row.starts[i] <= last; i += 1) {
      const op = row.ops[i], x = Math.max(this.x(row.starts[i]), NAMES - 2);
      const stop = Math.min(this.x(row.ends[i]), this.width);
      busy.fill(1, Math.floor(x), Math.max(Math.floor(stop), Math.floor(x) + (stop - x > 0.5)));
      if (ops.seconds[op] === null) {
        context.fillStyle = this.colour(op);
        context.fillText("?", x, row.y + ROW / 2);
        continue;
      }
      if (stop < drawn) { continue; }
      const wide = stop - x;
      context.fillStyle = this.colour(op);
      if (wide < 3) {
        context.globalAlpha = Math.max(0.35, Math.min(1, wide));
        context.fillRect(x, row.y + 1, Math.max(wide, 1), ROW - 3);
        context.globalAlpha = 1;
        drawn = x + Math.max(wide, 1);
        continue;
      }
      drawn = stop;
      context.fillRect(x, row.y + 1, wide - 1, ROW - 3);
      if (wide > 30) {
        const name = texts[ops.name[op]], kind = texts[ops.op[op]];
        const room = Math.floor((wide - 10) / 6.8);
        const words = [name.includes(kind) ? name : `${kind} ${name}`, kind].find((each) => each.length <= room);
        context.fillStyle = dark.matches ? "#0b0b10" : "#fff";
        if (words) { context.fillText(words, x + 5, row.y + ROW / 2); }
      }
    }
    return busy;
  }
  waits(context, busy) {
    const { lanes } = this.program;
    const theme = dark.matches ? "dark" : "light";
    const isCompute = this.rows.map((row) => lanes[row.lane].kind === "compute");
    const home = this.rows[isCompute.indexOf(true)];
    if (!home) { return; }
    const patterns = lanes.map((lane) => this.hatched(context, lane[theme]));
    const others = [false, true].flatMap((copies) => this.rows.map((_, place) => place).filter(
      (place) => !isCompute[place] && (lanes[this.rows[place].lane].kind === "copy") === copies));
    for (let x = NAMES; x < this.width - still[0]; x += 1) {
      if (isCompute.some((is, place) => is && busy[place][x])) { continue; }
      const place = others.find((each) => busy[each][x]);
      if (place === undefined) { continue; }
      context.fillStyle = patterns[this.rows[place].lane];
      context.fillRect(x, home.y + 1, 1, ROW - 3);
    }
  }
  memory(context, ink, dim, page) {
    const { memory, compute, end } = this.program;
    const foot = this.curve + CURVE, near = memory.limit !== null && memory.limit <= 3 * memory.peak;
    const top = Math.max(memory.peak, near ? memory.limit : 0, 1);
    const level = (size) => foot - size / top * (CURVE - 18);
    context.beginPath();
    context.moveTo(this.x(Math.max(first, 0)), foot);
    for (let i = Math.max(below(memory.times, first) - 1, 0); i < memory.times.length; i += 1) {
      const start = Math.max(memory.times[i], first);
      const stop = i + 1 < memory.times.length ? memory.times[i + 1] : end;
      if (start > last) { break; }
      context.lineTo(this.x(start), level(memory.bytes[i]));
      context.lineTo(this.x(Math.min(stop, last)), level(memory.bytes[i]));
    }
    context.lineTo(this.x(Math.min(end, last)), foot);
    context.closePath();
    context.fillStyle = context.strokeStyle = compute[dark.matches ? "dark" : "light"].memory;
    context.globalAlpha = 0.45;
    context.fill();
    context.globalAlpha = 1;
    context.stroke();
    if (near) {
      context.strokeStyle = context.fillStyle = dim;
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(NAMES, level(memory.limit));
      context.lineTo(this.width, level(memory.limit));
      context.stroke();
      context.setLineDash([]);
      context.textAlign = "right";
      context.fillText(`${bytes(memory.limit)} allowed`, this.width - still[0] - 4, level(memory.limit) - 8);
      context.textAlign = "left";
    }
    const x = this.x(memory.at), y = level(memory.peak);
    context.fillStyle = ink;
    context.beginPath();
    context.arc(x, y, 3.5, 0, 7);
    context.fill();
    context.strokeStyle = page;
    context.lineWidth = 4;
    const words = `peak ${bytes(memory.peak)}`;
    const place = x > this.width / 2 ? x - 10 - context.measureText(words).width : x + 10;
    context.strokeText(words, place, y - 4);
    context.fillText(words, place, y - 4);
    context.lineWidth = 1;
  }
  arrows(context, ink, op) {
    const { ops } = this.program;
    const middle = (each) => this.rows[ops.row[each]].y + ROW / 2;
    context.strokeStyle = ink;
    context.lineWidth = 1.5;
    context.strokeRect(this.x(ops.start[op]), this.rows[ops.row[op]].y,
      Math.max(this.x(ops.end[op]) - this.x(ops.start[op]), 2), ROW - 1);
    for (const before of ops.after[op]) {
      if (ops.row[before] < 0) { continue; }
      const [x, y, stop, foot] = [this.x(ops.end[before]), middle(before), this.x(ops.start[op]), middle(op)];
      context.beginPath();
      context.moveTo(x, y);
      context.bezierCurveTo(x + 24, y, stop - 24, foot, stop, foot);
      context.stroke();
    }
    context.lineWidth = 1;
  }
  at(x, y) {
    const row = this.rows.find((each) => y >= each.y && y < each.y + ROW);
    if (!row || x < NAMES) { return null; }
    const { ops } = this.program;
    const pixel = (last - first) / (this.width - NAMES - still[0]);
    const time = first + (x - NAMES) * pixel;
    let found = null, most = -1;
    for (let i = below(row.ends, time - 2 * pixel); i < row.ops.length && row.starts[i] <= time + 2 * pixel; i += 1) {
      const inside = row.starts[i] <= time && time < row.ends[i];
      const long = inside ? Infinity : row.ends[i] - row.starts[i];
      if (long > most) { found = row.ops[i]; most = long; }
      if (inside && ops.end[row.ops[i]] - ops.start[row.ops[i]] > pixel) { return row.ops[i]; }
    }
    return found;
  }
}

const all = programs.map((program, number) => new Chart(program, number));
function draw() { wanted = 0; all.forEach((chart) => chart.draw()); }
function redraw() { wanted = wanted || requestAnimationFrame(draw); }
function show(start, end) {
  const long = Math.min(Math.max(end - start, 100), limit);
  first = Math.min(Math.max(start, 0), limit - long);
  last = first + long;
  redraw();
}
function zoom(factor, share) {
  const at = first + (last - first) * share;
  show(at - (at - first) * factor, at + (last - at) * factor);
}
function facts(chart, op) {
  const { ops, lanes } = chart.program, found = document.createDocumentFragment();
  const title = document.createElement("b");
  title.textContent = chart.text(ops.name[op]);
  const list = document.createElement("dl");
  const runs = ops.runs[op], time = ops.seconds[op];
  const often = runs === 1 ? "" : runs === null ? ", in a loop of unknown length" : `, ×${runs.toLocaleString("en")}`;
  const told = [
    ["operation", chart.text(ops.op[op])],
    ["on", lanes[ops.lane[op]].name],
    ["takes", time === null ? "no estimate" : seconds(time) + often],
    ["exposed", ops.exposed[op] ? seconds(ops.exposed[op]) : ""],
    ["by", chart.text(ops.estimate[op])],
    ["bound by", chart.text(ops.bound[op])],
    ["counted as", chart.text(ops.detail[op])],
    ["bytes", ops.bytes[op] ? bytes(ops.bytes[op]) : ""],
    ["source", chart.text(ops.source[op])],
  ];
  for (const [what, words] of told) {
    if (!words) { continue; }
    const name = document.createElement("dt"), value = document.createElement("dd");
    name.textContent = what;
    value.textContent = words;
    list.append(name, value);
  }
  found.append(title, list);
  return found;
}
function under(event) {
  for (const chart of all) {
    const box = chart.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (y >= 0 && y < box.height) {
      const op = chart.at(x, y);
      return op === null ? null : { chart, op };
    }
  }
  return null;
}
function choose(found) {
  chosen = found;
  detail.replaceChildren(...(found ? [facts(found.chart, found.op)] : []));
  redraw();
}
const share = (event) => {
  const box = charts.getBoundingClientRect();
  return Math.min(Math.max((event.clientX - box.left - NAMES) / (box.width - NAMES - still[0]), 0), 1);
};
charts.addEventListener("wheel", (event) => {
  event.preventDefault();
  const amount = event.deltaMode ? event.deltaY * 16 : event.deltaY;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const moved = (event.deltaX || amount) / charts.clientWidth * (last - first);
    show(first + moved, last + moved);
  } else {
    zoom(Math.exp(Math.min(Math.max(amount, -200), 200) / 400), share(event));
  }
}, { passive: false });
let held = null;
charts.addEventListener("pointerdown", (event) => {
  held = { x: event.clientX, first, last, moved: false };
  charts.setPointerCapture(event.pointerId);
});
charts.addEventListener("pointermove", (event) => {
  if (held) {
    held.moved = held.moved || Math.abs(event.clientX - held.x) > 3;
    charts.classList.toggle("dragged", held.moved);
    const moved = (held.x - event.clientX) / (charts.clientWidth - NAMES - still[0]) * (held.last - held.first);
    if (held.moved) { show(held.first + moved, held.last + moved); }
  }
  const found = held && held.moved ? null : under(event);
  tip.hidden = !found;
  if (found) {
    tip.replaceChildren(facts(found.chart, found.op));
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }
});
charts.addEventListener("pointerup", (event) => {
  if (held && !held.moved) { choose(under(event)); }
  held = null;
  charts.classList.remove("dragged");
});
charts.addEventListener("pointercancel", () => { held = null; });
charts.addEventListener("pointerleave", () => { tip.hidden = true; });
const pan = (part) => show(first + (last - first) * part, last + (last - first) * part);
const keys = {
  ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), Home: () => pan(-1e9), End: () => pan(1e9),
  "+": () => zoom(0.6, 0.5), "=": () => zoom(0.6, 0.5), "-": () => zoom(1 / 0.6, 0.5), "−": () => zoom(1 / 0.6, 0.5),
  0: () => show(0, limit), Escape: () => choose(null),
};
document.addEventListener("keydown", (event) => {
  const act = keys[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) { return; }
  event.preventDefault();
  act();
});
addEventListener("resize", redraw);
dark.addEventListener("change", redraw);
draw();
