import { agUiWire } from './ag-ui/ag-ui.ts'
import { messagesWire } from './messages/messages.ts'
import { openaiWire } from './openai/openai.ts'
import { partsSseWire, partsWire } from './parts/parts.ts'
import { responsesWire } from './responses/responses.ts'
import { textWire } from './text/text.ts'
import { uiWire } from './ui/ui.ts'
import type { Wire } from './wire.ts'

/** The built-in wires by the names that users write (`--format`). Packs and programs add theirs: `project/registries.ts`. */
export const builtinWires: ReadonlyMap<string, Wire> = new Map(
  [textWire, uiWire, openaiWire, responsesWire, messagesWire, agUiWire, partsWire, partsSseWire].map(
    (wire): [string, Wire] => [wire.name, wire],
  ),
)
