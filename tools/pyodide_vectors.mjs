// Runs the vectors on CPython for WebAssembly: `node pyodide_vectors.mjs PYODIDE_FOLDER PROJECT`.
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [folder, project] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: folder });
python.FS.mkdirTree("/project");
python.FS.mount(python.FS.filesystems.NODEFS, { root: project }, "/project");
process.exitCode = python.runPython(`
import sys
sys.dont_write_bytecode = True
sys.path[:0] = ["/project/src", "/project/vectors"]
import run
run.main(["--build", "pure"])
`);
