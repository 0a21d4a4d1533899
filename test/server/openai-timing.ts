/** A server whose model is held, and what a client of /v1 sees when. */
import { finish, type Latch, type ScriptStep } from '../../src/models/testing/scripted-model.ts'

export const chat = '/v1/chat/completions'

export const role = '"delta":{"role":"assistant","content":""}'

export const heldAfterOne = (gate: Latch): ScriptStep[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'one' },
  gate,
  { type: 'text-delta', id: 't', delta: 'two' },
  { type: 'text-end', id: 't' },
  finish(),
]
