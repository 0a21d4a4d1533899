import type { Recording } from '../../part/recording.ts'
import { toOtlp } from './otlp-json.ts'
import { createSpanFold } from './span-fold.ts'

/** The spans of a run as OTLP/JSON, one line, also if its caller has asked not to record them. */
export async function* exportTraces(
  recording: Recording,
  last: number,
  content: boolean,
): AsyncGenerator<string, void, void> {
  const fold = createSpanFold({ content, unsampled: true })
  for await (const batch of recording.read({ before: last + 1 })) for (const entry of batch) fold.apply(entry)
  yield `${JSON.stringify(toOtlp(fold.spans(), { serviceName: 'millrace' }))}\n`
}
