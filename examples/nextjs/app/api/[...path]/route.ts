// Millrace's routes under /api: /api/chat for useChat. With `apiKey` or `authorize` in src/millrace.ts also /api/runs, the log.
import { handle } from '../../../src/millrace.ts'

export const GET = handle
export const POST = handle
