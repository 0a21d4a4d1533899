/**
 * Where the module of the threads of `query.ts` is. The build replaces it by a `data:` URL with all that it imports (`scripts/bundle.ts`): bundlers
 * drop a file, or copy it to where it is not an ES module (Next.js), and the thread never starts.
 */
export const queryThread = new URL('./read-thread.ts', import.meta.url)
