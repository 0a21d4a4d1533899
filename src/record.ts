/** `millrace/record`: where runs are kept. `sqliteStore` needs Node; `memoryStore` does not. */
export { memoryStore } from './record/memory-store.ts'
export { sqliteStore, type SqliteOptions } from './record/sqlite-store.ts'
