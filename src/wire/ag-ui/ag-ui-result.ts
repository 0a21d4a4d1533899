/** The result of a tool as the content of a message. */
import { messageOf } from '../../part/error.ts'
import type { AgUiEventOf } from './ag-ui-event.ts'

type Content = AgUiEventOf<'TOOL_CALL_RESULT'>['content']

/** A text as it is, anything else as JSON. */
export function toResultContent(result: unknown, _old: boolean): Content {
  return typeof result === 'string' ? result : (JSON.stringify(result) ?? messageOf(result))
}
