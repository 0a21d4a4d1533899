/** `millrace/server`: the HTTP server as `(Request) => Promise<Response>`. */
export { createHandler } from './server/handler.ts'
export type { Authenticated } from './project/config.ts'
export type { Handler, HandlerOptions } from './server/handler-context.ts'
