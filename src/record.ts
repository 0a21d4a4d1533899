/** `millrace/record`: where runs are kept, and runs as files. `sqliteStore` needs Node; the others do not. */
export { memoryStore } from './store/memory-store.ts'
export { createNdjsonReader, readNdjson, verify, type LineFault, type NdjsonReader } from './store/ndjson.ts'
export { sqliteStore, type SqliteOptions } from './store/sqlite-store.ts'
