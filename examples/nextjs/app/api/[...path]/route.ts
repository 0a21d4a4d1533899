// Millrace's routes under /api, such as /api/chat for useChat. /api/runs needs `session` in src/millrace.ts.
import { handle } from '../../../src/millrace.ts'

export const GET = handle
export const POST = handle
