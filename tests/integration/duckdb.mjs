// SPDX-License-Identifier: LGPL-2.1-or-later
// Runs the SQL on standard input, and prints the rows of its last statement as JSON.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

// argv[2]: the folder that has node_modules.
const { DuckDBInstance } = createRequire(process.argv[2] + "/")("@duckdb/node-api");
const connection = await (await DuckDBInstance.create(":memory:")).connect();
const statements = await connection.extractStatements(readFileSync(0, "utf8"));
let rows = [];
for (let i = 0; i < statements.count; i++) {
  const prepared = await statements.prepare(i);
  rows = (await prepared.runAndReadAll()).getRowObjectsJson();
}
console.log(JSON.stringify(rows));
