/** Stands in for `next/server`: a NextRequest is a Request. */
export const NextRequest = Request
