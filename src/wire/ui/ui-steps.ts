/**
 * The blocks and steps of a UI message. Model calls that overlap (parallel answers) share one step, because the clients look for
 * open parts in the current step only.
 */
import type { EntryOf } from '../../part/entry.ts'
import { isUnder } from '../../part/path.ts'
import type { Sink } from '../wire.ts'
import type { UiChunk } from './ui-chunk.ts'
import type { Shown } from './ui-shown.ts'
import type { UiTools } from './ui-tools.ts'

type Kind = 'text' | 'reasoning'

export interface UiSteps {
  startBlock(kind: Kind, entry: EntryOf<'text-start'> | EntryOf<'reasoning-start'>): void
  delta(entry: EntryOf<'text-delta'> | EntryOf<'reasoning-delta'>): void
  endBlock(entry: EntryOf<'text-end'> | EntryOf<'reasoning-end'>): void
  /** Sends the starts of all open blocks, for a client that joins here. */
  reopen(): void
  /** A model call of the answer starts. */
  startCall(path: string): void
  finishCall(path: string): void
  /** Ends the step if nothing is open in it. */
  settle(): void
  /** Whether a superseded attempt can be retracted; if so, it is, and its blocks and calls are forgotten. */
  retract(path: string): boolean
  /** Sends the ends of all open blocks. */
  closeBlocks(): void
  /** Sends the end of the step, if one is open. */
  close(): void
}

export interface UiStepsOptions {
  sink: Sink<UiChunk>
  tools: UiTools
  shown: Shown
  ui7: boolean
}

interface Block {
  kind: Kind
  path: string
  sendDelta(text: string): void
}

export function createUiSteps({ sink, tools, shown, ui7 }: UiStepsOptions): UiSteps {
  /** Open blocks that were sent to the client. */
  const blocks = new Map<string, Block>()
  /** Model calls that run in the client's current step. */
  const calls = new Set<string>()
  let isOpen = false

  function close(): void {
    if (isOpen) sink.send({ type: 'finish-step' })
    isOpen = false
  }

  // Version 6 drops open text blocks at `finish-step`, so it waits until all blocks are closed.
  function settle(): void {
    if (calls.size === 0 && blocks.size === 0 && tools.pending() === 0) close()
  }

  return {
    settle,
    close,
    startBlock(kind, { type, id, step, providerMetadata }) {
      const sendDelta = sink.prepare((delta) => ({ type: `${kind}-delta`, id, delta }))
      blocks.set(id, { kind, path: step, sendDelta })
      shown.add(step)
      sink.send({ type, id, providerMetadata })
    },
    delta({ type, id, delta, providerMetadata }) {
      const block = blocks.get(id)
      if (block === undefined) return
      if (providerMetadata === undefined) block.sendDelta(delta)
      else sink.send({ type, id, delta, providerMetadata })
    },
    endBlock(entry) {
      const { type, id, providerMetadata } = entry
      if (!blocks.delete(id)) return
      const citations = ui7 && entry.type === 'text-end' ? entry.citations : undefined
      sink.send({ type, id, citations, providerMetadata })
      settle()
    },
    reopen() {
      for (const [id, { kind }] of blocks) sink.send({ type: `${kind}-start`, id })
    },
    startCall(path) {
      calls.add(path)
      tools.flush()
      // After a step boundary the client would add the rest of an open input as a second part.
      if (isOpen || tools.pending() > 0) return
      isOpen = true
      shown.step()
      tools.newStep()
      sink.send({ type: 'start-step' })
    },
    finishCall(path) {
      calls.delete(path)
      settle()
    },
    retract(path) {
      const isMixed = tools.pendingOutside(path) || [...blocks.values()].some((block) => !isUnder(block.path, path))
      const retraction = shown.retract(path)
      if (retraction !== 'nothing' && (retraction === 'impossible' || isMixed || !ui7)) return false
      for (const [id, block] of blocks) if (isUnder(block.path, path)) blocks.delete(id)
      for (const call of calls) if (isUnder(call, path)) calls.delete(call)
      tools.forget(path)
      // The step stays open: `reset-step` keeps its boundary for the next attempt.
      if (retraction === 'step') sink.send({ type: 'reset-step' })
      return true
    },
    closeBlocks() {
      for (const [id, { kind }] of blocks) sink.send({ type: `${kind}-end`, id })
      blocks.clear()
    },
  }
}
