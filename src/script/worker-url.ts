/** Where the module of the pool's workers is. The build replaces it by a `data:` URL with all that it imports: see `src/store/tables/query-thread.ts`. */
export const workerUrl = new URL('./worker.ts', import.meta.url)
