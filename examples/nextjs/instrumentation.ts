// Next.js calls this once when the server starts. Register the callbacks, tools and step types of your agents here.
import { callbackRegistry } from 'millrace'

export function register(): void {
  callbackRegistry['persistConversation'] = ({ text }: { text: string }) => {
    console.error(`persistConversation: ${text.length} characters`)
  }
  callbackRegistry['logError'] = ({ error }: { error: unknown }) => console.error('logError:', error)
}
