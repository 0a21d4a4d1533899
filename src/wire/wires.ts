import { openaiWire } from './openai.ts'
import { partsSseWire, partsWire } from './parts.ts'
import { textWire } from './text.ts'
import { uiWire } from './ui.ts'

/** All wires by the names that users write (`--format`). */
export const wires = { text: textWire, ui: uiWire, openai: openaiWire, parts: partsWire, 'parts-sse': partsSseWire }
