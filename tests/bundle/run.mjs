// Runs a bundle for wasm32 once on files:
// node run.mjs MODULE NAME ENTRY,... WEIGHTS MUTABLES_IN MUTABLES_OUT TIMES NUMBER, where NUMBER selects the entry.
// Sizes come from NAME_config in the module's memory: five 32-bit numbers. The exit status is the entry's return value.
import { readFileSync, writeFileSync } from "node:fs";
import { argv, exit } from "node:process";

const [, , path, name, entries, weights, given, made, , number] = argv;
const { instance } = await WebAssembly.instantiate(readFileSync(path), {});
const { memory, __heap_base: heap, ...exported } = instance.exports;
const config = new Uint32Array(memory.buffer, exported[`${name}_config`].value, 5);
const [constants, mutables, activations, alignment] = config;
const up = (n) => Math.ceil(n / alignment) * alignment;
const first = up(heap.value);
const second = first + up(constants);
const third = second + up(mutables);
const need = Math.ceil((third + up(activations)) / 65536) - memory.buffer.byteLength / 65536;
if (need > 0) memory.grow(need);
const bytes = new Uint8Array(memory.buffer);
bytes.set(readFileSync(weights), first);
bytes.set(readFileSync(given), second);
const code = exported[entries.split(",")[number]](first, second, third);
writeFileSync(made, bytes.subarray(second, second + mutables));
exit(code);
