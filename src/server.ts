/** `millrace/server`: the HTTP server as `(Request) => Promise<Response>`. */
export { createHandler } from './server/handler.ts'
export type { Handler, HandlerOptions } from './server/handler-context.ts'
