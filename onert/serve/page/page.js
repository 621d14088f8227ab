"use strict";

const PERIOD = 1000; // milliseconds between updates
const POINTS = 60;
const rates = [];
const latencies = [];
let before = null; // the last update: its time, requests answered so far, and their total seconds
let known = ""; // the models listed in the form

const at = (id) => document.getElementById(id);

// Strings become text nodes, never markup, because names come from files.
function row(table, cells) {
  const line = table.insertRow();
  for (const [value, isNumber] of cells) {
    const cell = line.insertCell();
    if (value instanceof Node) cell.append(value);
    else cell.textContent = value;
    if (isNumber) cell.className = "n";
  }
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return `${count.toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

function milliseconds(seconds) { return seconds === undefined ? "" : (seconds * 1000).toFixed(2); }

function chart(id, values, digits) {
  const most = Math.max(...values, 1e-9);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  const step = 300 / (POINTS - 1);
  const start = 300 - step * (values.length - 1);
  line.setAttribute("points", values.map((v, i) => `${start + i * step},${78 - 74 * v / most}`).join(" "));
  at(id).replaceChildren(line);
  at(`${id}-now`).textContent = values.length ? values[values.length - 1].toFixed(digits) : "";
}

function note(values, value) { values.push(value); if (values.length > POINTS) values.shift(); }

function changer(name, what) {
  const button = document.createElement("button");
  button.textContent = what;
  button.onclick = async () => {
    button.disabled = true;
    const answer = await fetch(`/v2/repository/models/${encodeURIComponent(name)}/${what}`, { method: "POST" });
    if (!answer.ok) at("answer").textContent = (await answer.json()).error;
    look();
  };
  return button;
}

function show(status) {
  at("state").textContent = status.ready ? "ready" : "not ready";
  at("state").className = status.ready ? "badge ready" : "badge";
  at("queue").textContent = `${status.queue.active} running, ${status.queue.size} of ${status.queue.limit} waiting`;
  const models = document.createElement("tbody");
  for (const m of status.models) {
    const isReady = m.state === "READY";
    const devices = Object.values(m.devices || {}).map((each) => each.join(", ")).join(" → ");
    row(models, [[m.name], [m.reason ? `${m.state}: ${m.reason}` : m.state], [devices], [m.succeeded ?? "", true],
      [m.failed ?? "", true], [m.refused ?? "", true], [m.active ?? "", true], [m.waiting ?? "", true],
      [milliseconds(m.p50), true], [milliseconds(m.p99), true], [changer(m.name, isReady ? "unload" : "load")]]);
  }
  at("models").tBodies[0].replaceWith(models);
  const devices = document.createElement("tbody");
  for (const d of status.devices) {
    row(devices, [[d.name], [d.kind], [d.load, true],
      [`${bytes(d.used_memory)} of ${bytes(d.maximum_memory)}`, true], [d.functions.join(", ")]]);
  }
  at("devices").tBodies[0].replaceWith(devices);

  const ready = status.models.filter((m) => m.state === "READY");
  const now = {
    time: performance.now(),
    answered: ready.reduce((sum, m) => sum + m.succeeded, 0),
    seconds: ready.reduce((sum, m) => sum + m.succeeded * m.mean, 0),
  };
  if (before) {
    const answered = Math.max(0, now.answered - before.answered);
    note(rates, answered * 1000 / (now.time - before.time));
    note(latencies, answered ? Math.max(0, now.seconds - before.seconds) * 1000 / answered : 0);
  }
  before = now;
  chart("rate", rates, 1);
  chart("latency", latencies, 2);

  const names = ready.map((m) => m.name).join("\n");
  if (names !== known) {
    known = names;
    at("model").replaceChildren(...ready.map((m) => new Option(m.name, m.name)));
  }
}

async function look() {
  try {
    show(await (await fetch("/status")).json());
  } catch {
    at("state").textContent = "no connection";
    at("state").className = "badge gone";
  }
}

// The dimensions of a picture in a shape: [batch, rows, columns, channels] or [batch, channels, rows, columns].
function layout(shape) {
  const [rows, columns, channels] = shape.slice(-3);
  if (shape.length < 3) return null;
  if ([1, 3, 4].includes(channels)) return { rows, columns, channels, last: true };
  if ([1, 3, 4].includes(rows)) return { rows: columns, columns: channels, channels: rows, last: false };
  return null;
}

const ARRAYS = { FP32: Float32Array, UINT8: Uint8Array, INT8: Int8Array, INT32: Int32Array };
const RANGES = { "0to1": (v) => v / 255, neg1to1: (v) => v / 127.5 - 1, "0to255": (v) => v, neg128to127: (v) => v - 128 };
const SUITS = { FP32: "0to1", UINT8: "0to255", INT8: "neg128to127", INT32: "0to255" };

function tensor(picture, input, mode) {
  const shape = input.shape.map((d) => (d === -1 ? 1 : d));
  const place = layout(shape);
  const kind = ARRAYS[input.datatype];
  if (!place || !kind) throw new Error(`input ${input.name} does not take a picture: ${input.datatype} [${input.shape}]`);
  const canvas = at("shown");
  canvas.width = place.columns;
  canvas.height = place.rows;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(picture, 0, 0, place.columns, place.rows);
  const pixels = context.getImageData(0, 0, place.columns, place.rows).data;
  const change = RANGES[mode === "auto" ? SUITS[input.datatype] : mode];
  const count = place.rows * place.columns;
  const found = new kind(count * place.channels);
  for (let p = 0; p < count; p += 1) {
    const [r, g, b, a] = pixels.subarray(4 * p, 4 * p + 4);
    const values = place.channels === 1 ? [0.299 * r + 0.587 * g + 0.114 * b] : [r, g, b, a];
    for (let c = 0; c < place.channels; c += 1) {
      found[place.last ? p * place.channels + c : c * count + p] = change(values[c]);
    }
  }
  return { shape, data: found };
}

function best(output) {
  const order = output.data.map((value, i) => [value, i]).sort((a, b) => b[0] - a[0]).slice(0, 5);
  const lines = order.map(([value, i]) => `${String(i).padStart(8)}  ${value}`);
  return `${output.name}  ${output.datatype} [${output.shape}]\n${lines.join("\n")}`;
}

async function send(event) {
  event.preventDefault();
  const told = at("answer");
  try {
    const file = at("file").files[0];
    if (!file) throw new Error("choose an image first");
    const model = `/v2/models/${encodeURIComponent(at("model").value)}`;
    const described = await (await fetch(model)).json();
    if (described.error) throw new Error(described.error);
    if (described.inputs.length !== 1) throw new Error(`the model has ${described.inputs.length} inputs, expected one`);
    const [input] = described.inputs;
    const { shape, data } = tensor(await createImageBitmap(file), input, at("pixels").value);
    const head = new TextEncoder().encode(JSON.stringify({
      inputs: [{ name: input.name, datatype: input.datatype, shape, parameters: { binary_data_size: data.byteLength } }],
    }));
    const start = performance.now();
    const answer = await fetch(`${model}/infer`, {
      method: "POST",
      headers: { "Inference-Header-Content-Length": String(head.length) },
      body: new Blob([head, data]),
    });
    const found = await answer.json();
    if (found.error) throw new Error(found.error);
    const took = (performance.now() - start).toFixed(1);
    told.textContent = [`answered in ${took} ms`, ...found.outputs.map(best)].join("\n\n");
  } catch (error) {
    told.textContent = error.message;
  }
}

at("send").addEventListener("submit", send);
look();
setInterval(look, PERIOD);
