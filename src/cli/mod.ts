export { EXIT, main } from "./main.ts";
