/** `POST /v1/chat/completions`, `POST /v1/completions`, `GET /v1/models`, `GET /v1/models/:id`, also under `/api/v1`. */
import type { Hono } from 'hono'
import type { HandlerContext } from '../handler.ts'
import type { Kind } from './openai-completion-request.ts'
import { postCompletion } from './openai-completion.ts'
import { openAiError } from './openai-error.ts'
import { bases } from './openai-extensions.ts'
import { listModels, showModel } from './openai-models.ts'

export function mountOpenAi(app: Hono, context: HandlerContext): void {
  const { agents } = context.runtime
  for (const base of bases) {
    const { path } = base
    const post = (kind: Kind) => (c: { req: { raw: Request } }) =>
      answered(context, () => postCompletion(context, c.req.raw, kind, base))
    app.post(`${path}/chat/completions`, post('chat.completion'))
    app.post(`${path}/completions`, post('text_completion'))
    app.get(`${path}/models`, () => listModels(agents))
    app.get(`${path}/models/:id`, (c) => answered(context, async () => showModel(agents, c.req.param('id'))))
  }
}

async function answered({ onError }: HandlerContext, respond: () => Promise<Response>): Promise<Response> {
  try {
    return await respond()
  } catch (error) {
    const response = openAiError(error as Error)
    if (response.status >= 500) onError(error)
    return response
  }
}
