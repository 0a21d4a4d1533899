/** `millrace/record`: where runs are kept, and runs as files. `sqliteStore` needs Node; the others do not. */
export { memoryStore } from './record/memory-store.ts'
export { createNdjsonReader, readNdjson, verify, type LineFault, type NdjsonReader } from './record/ndjson.ts'
export { sqliteStore, type SqliteOptions } from './record/sqlite-store.ts'
