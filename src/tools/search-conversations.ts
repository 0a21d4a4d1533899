import { z } from 'zod'
import type { ToolContext, ToolImplementation } from './tool.ts'

/** `{words, limit?}` → `{found}`: what was said in earlier conversations with this user. */
export const searchConversations: ToolImplementation = {
  description:
    'Search what was said in earlier conversations with this user. Finds messages that contain all the given words, newest first.',
  parameters: z.object({
    words: z.string().trim().min(1).max(200).describe('One to three words that the message must contain'),
    limit: z.number().int().min(1).max(20).optional().describe('Most messages to return. Default: 5'),
  }),
  execute: async ({ words, limit = 5 }: { words: string; limit?: number }, { searchEarlier }: ToolContext) => ({
    found: (await searchEarlier(words, limit)).map(({ at, ...said }) => ({ ...said, at: new Date(at).toISOString() })),
  }),
  idempotent: true,
  volatile: true,
}
