/** `millrace/server`: the HTTP server as `(Request) => Promise<Response>`. */
export { createHandler, type Handler, type HandlerOptions } from './server/handler.ts'
