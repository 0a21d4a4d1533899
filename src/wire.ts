/** `millrace/wire`: a run's entries as each protocol's text. Browser-safe. */
export { wires } from './wire/wires.ts'
export { fromClientMessages, toolAnswers, toUiMessages } from './wire/ui/ui-message.ts'
export type { Encoder, EncoderOptions, Wire } from './wire/wire.ts'
