import { openaiWire } from './openai/openai.ts'
import { partsSseWire, partsWire } from './parts/parts.ts'
import { textWire } from './text/text.ts'
import { uiWire } from './ui/ui.ts'

/** All wires by the names that users write (`--format`). */
export const wires = { text: textWire, ui: uiWire, openai: openaiWire, parts: partsWire, 'parts-sse': partsSseWire }
