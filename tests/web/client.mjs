// node client.mjs MODULE URL: plays the scenario, and prints what came of it.
import { pathToFileURL } from "node:url";
import { played } from "./scenario.mjs";

const [module, url] = process.argv.slice(2);
console.log(JSON.stringify(await played(await import(pathToFileURL(module)), url)));
