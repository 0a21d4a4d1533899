/**
 * Calls back 10 ms later. For what a new run needs, but not before its first delta: what comes one turn of the event loop later, or a
 * millisecond, would come between the request to the model and the first delta of its answer.
 */
export function afterFirstDelta(go: () => void): ReturnType<typeof setTimeout> {
  return setTimeout(go, 10)
}
