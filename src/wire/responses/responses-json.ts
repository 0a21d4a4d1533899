/** A response as one JSON, for `stream: false`: that of the stream's last event. */
import { objects } from '../framing/objects.ts'
import { createWire, type Sink } from '../wire.ts'
import type { ResponsesEvent } from './response-items.ts'
import type { ResponseObject } from './response-object.ts'
import { createResponsesAnswer, type ResponsesOptions } from './responses-answer.ts'

/** Its one event comes at the end. */
export const responsesJsonWire = createWire<ResponseObject, ResponsesOptions, ResponseObject[]>({
  name: 'responses-json',
  project: (sink, context, options) => createResponsesAnswer(lastOf(sink), context, options),
  framing: objects(),
})

const last: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed'])

function lastOf(sink: Sink<ResponseObject>): Sink<ResponsesEvent> {
  return {
    muted: false,
    send({ type, response }) {
      if (last.has(type)) sink.send(response as ResponseObject)
    },
    prepare: () => () => undefined,
    end: () => sink.end(),
  }
}
