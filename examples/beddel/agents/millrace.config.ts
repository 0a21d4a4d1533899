import { defineConfig } from 'millrace'

/** The two callbacks that chat.yaml names. A real application would write to its database and its error tracker. */
export default defineConfig({
  callbacks: {
    persistConversation: ({ text, totalUsage }: { text: string; totalUsage?: { totalTokens?: number } }) => {
      console.error(`persistConversation: ${text.length} characters, ${totalUsage?.totalTokens ?? '?'} tokens`)
    },
    logError: ({ error }: { error: unknown }) => {
      console.error('logError:', error instanceof Error ? error.message : error)
    },
  },
})
