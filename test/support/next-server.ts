/** Stands in for `next/server`: a NextRequest is a Request, and the process outlives its responses. */
export const NextRequest = Request
export const after = (): void => undefined
