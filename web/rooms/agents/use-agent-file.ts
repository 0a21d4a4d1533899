/** The file of an agent: as it is on disk, as it is being written, and what the server says of that. */
import { useCallback, useEffect, useRef, useState } from 'react'
import type { AgentCheck } from '../../../src/part/agent-tree.ts'
import { useResource } from '../../data/resource.ts'
import { followAgent, readAgent, saveAgent, type AgentFile } from './agent-api.ts'
import { keepDraft, readDraft, type Draft } from './drafts.ts'
import { useAgentCheck } from '../../kit/yaml/use-agent-check.ts'

export interface AgentDraft {
  file: AgentFile | undefined
  error: unknown
  reload(): void
  text: string
  write(text: string): void
  isChanged: boolean
  /** What the server finds in `text`; undefined until it has looked. */
  checked: AgentCheck | undefined
  /** What is on disk now, if somebody else has changed it since this draft was begun. */
  theirs: string | undefined
  takeTheirs(): void
  /** Goes on from what is on disk: the next save replaces it. */
  keepMine(): void
  /** Whether it is saved now. */
  save(): Promise<boolean>
  saving: { isBusy: boolean; error?: unknown }
}

export function useAgentFile(id: string, canEdit: boolean): AgentDraft {
  const { value: file, error, reload } = useResource(`agent ${id}`, (signal) => readAgent(id, signal))
  const [draft, setDraft] = useState(() => readDraft(id))
  const latest = useRef(draft)
  /** What was saved here last, over which state of the file. */
  const [saved, setSaved] = useState<{ text: string; etag: string; over: string | undefined }>()
  const [saving, setSaving] = useState<AgentDraft['saving']>({ isBusy: false })
  useEffect(() => followAgent(id, reload), [id, reload])

  // Until the file is loaded again, what was saved is what is on disk.
  const disk = saved !== undefined && saved.over === file?.etag ? saved : file
  const onDisk = disk?.text
  const text = draft?.text ?? onDisk ?? ''
  const isChanged = draft !== undefined && draft.text !== onDisk
  const begin = useCallback(
    (next: Draft | undefined) => {
      latest.current = next
      setDraft(next)
      keepDraft(id, next)
    },
    [id],
  )
  const etag = draft?.etag ?? disk?.etag
  const write = useCallback(
    (next: string) => begin(next === onDisk ? undefined : { text: next, etag }),
    [begin, onDisk, etag],
  )

  const checked = useAgentCheck(id, text, canEdit)
  useEffect(() => {
    if (!isChanged) return
    const ask = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', ask)
    return () => removeEventListener('beforeunload', ask)
  }, [isChanged])

  async function save(): Promise<boolean> {
    setSaving({ isBusy: true })
    try {
      const { etag: next } = await saveAgent(id, text, etag)
      setSaved({ text, etag: next, over: file?.etag })
      // What was typed meanwhile is not saved.
      const now = latest.current?.text ?? text
      begin(now === text ? undefined : { text: now, etag: next })
      setSaving({ isBusy: false })
      return true
    } catch (reason) {
      // 409: what is on disk is shown beside it. 422: its faults are shown at their lines.
      const { status } = reason as { status?: number }
      setSaving({ isBusy: false, ...(status === 409 || status === 422 ? undefined : { error: reason }) })
      return false
    } finally {
      reload()
    }
  }
  return {
    file,
    error,
    reload,
    text,
    write,
    isChanged,
    checked,
    theirs: isChanged && draft.etag !== disk?.etag ? onDisk : undefined,
    takeTheirs: () => begin(undefined),
    keepMine: () => begin(draft && { ...draft, etag: disk?.etag }),
    save,
    saving,
  }
}
