import type { ToolImplementation } from './tool.ts'
import { calculator } from './calculator.ts'
import { createCurrentTime } from './current-time.ts'
import { searchConversations } from './search-conversations.ts'

/** The tools of every runtime. A configured tool of the same name takes precedence. */
export const builtinTools: ReadonlyMap<string, ToolImplementation> = new Map([
  ['calculator', calculator],
  ['getCurrentTime', createCurrentTime()],
  ['searchConversations', searchConversations],
])
