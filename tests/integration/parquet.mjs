// SPDX-License-Identifier: LGPL-2.1-or-later
// Prints the rows of a Parquet file as JSON, by a reader that is not DuckDB's. argv: the folder that has node_modules,
// and the file.
import { pathToFileURL } from "node:url";

const from = (name, file) => import(pathToFileURL(`${process.argv[2]}/node_modules/${name}/src/${file}`));
const { parquetReadObjects, asyncBufferFromFile } = await from("hyparquet", "node.js");
const { compressors } = await from("hyparquet-compressors", "index.js");
const rows = await parquetReadObjects({ file: await asyncBufferFromFile(process.argv[3]), compressors });
console.log(JSON.stringify(rows, (key, value) => (typeof value === "bigint" ? Number(value) : value)));
