// Next.js calls this once when the server starts: the place to register what the agents name.
import { callbackRegistry } from 'millrace'

export function register(): void {
  callbackRegistry['persistConversation'] = ({ text }: { text: string }) => {
    console.error(`persistConversation: ${text.length} characters`)
  }
  callbackRegistry['logError'] = ({ error }: { error: unknown }) => console.error('logError:', error)
}
