/** `millrace/record`: where runs are kept, runs as files, and runs as models. `sqliteStore` needs Node; the others do not. */
export { createRecordingModel, type RecordingModelOptions } from './models/recording.ts'
export { recordedEntries, recordedRun, type Recording } from './part/recording.ts'
export { memoryStore } from './store/memory-store.ts'
export { createNdjsonReader, readNdjson, verify, type LineFault, type NdjsonReader } from './store/ndjson.ts'
export { sqliteStore, type SqliteOptions } from './store/sqlite-store.ts'
export { getStreamEvents } from './store/stream-events.ts'
