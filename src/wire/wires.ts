import { openaiWire } from './openai.ts'
import { partsSseWire, partsWire } from './parts.ts'
import { textWire } from './text.ts'
import { uiWire } from './ui.ts'

/** Every wire by the name people write (`--format`, `?format=`). */
export const wires = { text: textWire, ui: uiWire, openai: openaiWire, parts: partsWire, 'parts-sse': partsSseWire }
