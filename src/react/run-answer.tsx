/** The answer of a run: its text, reasoning, tool calls, files, sources and data. */
import type { ReactNode } from 'react'
import type { MessagePart } from '../client/agent-message.ts'
import type { RunProps } from './run-outline.tsx'
import { isOwnImage, safeUrl } from './safe-url.ts'
import { useLiveRun } from './use-live-run.ts'

/** How to draw a text, for example as Markdown. `isOpen`: more of it comes. Default: the text as it is. */
export type RenderText = (text: string, isOpen: boolean) => ReactNode

/** The answer of a run, live. Classes: `millrace-answer` with `data-status`; in it `millrace-text`, `-reasoning`, `-tool` (with `-agent` for what a called agent does), `-file`, `-source`, `-data`, `-error`. */
export function RunAnswer({ runId, client, renderText }: RunProps & { renderText?: RenderText }): ReactNode {
  const { parts, status, error } = useLiveRun(runId, client)
  return (
    <section className="millrace-answer" aria-label="Answer" aria-busy={status === 'running'} data-status={status}>
      <AnswerParts parts={parts} renderText={renderText} />
      {error !== undefined && (
        <p className="millrace-error" role="alert">
          {error.message}
        </p>
      )}
    </section>
  )
}

/** The same for parts that you have, such as those of a message of `useAgent`. */
export function AnswerParts({
  parts,
  renderText = (text) => text,
}: {
  parts: readonly MessagePart[]
  renderText?: RenderText | undefined
}): ReactNode {
  // Parts are only added, or dropped with all behind them, so their place names them.
  return parts.map((part, i) => <Part key={i} part={part} renderText={renderText} />)
}

function Part({ part, renderText }: { part: MessagePart; renderText: RenderText }): ReactNode {
  switch (part.type) {
    case 'text':
      return <div className="millrace-text">{renderText(part.text, part.state === 'streaming')}</div>
    case 'reasoning':
      return (
        <details className="millrace-reasoning">
          <summary>{part.state === 'streaming' ? 'Thinking…' : 'Thought'}</summary>
          {renderText(part.text, part.state === 'streaming')}
        </details>
      )
    case 'tool':
      return (
        <div className="millrace-tool" data-state={part.state}>
          <code>{part.toolName}</code> <code>{part.inputText}</code>{' '}
          <output>{part.errorText ?? (part.output === undefined ? '…' : textOf(part.output))}</output>
          {part.agent !== undefined && (
            <details className="millrace-agent" data-status={part.agent.status}>
              <summary>{`${part.agent.agent}: ${part.agent.status}`}</summary>
              <AnswerParts parts={part.agent.parts} renderText={renderText} />
            </details>
          )}
        </div>
      )
    case 'file':
      return <FilePart part={part} />
    case 'source':
      return (
        <p className="millrace-source">
          <SourceLink title={part.title ?? part.url ?? 'A document'} url={part.url} />
        </p>
      )
    case 'data':
      return (
        <pre className="millrace-data" data-name={part.name}>
          {textOf(part.data)}
        </pre>
      )
  }
}

function FilePart({ part: { mediaType, url, filename } }: { part: Extract<MessagePart, { type: 'file' }> }): ReactNode {
  const label = filename ?? mediaType
  if (isOwnImage(url)) return <img className="millrace-file" src={url} alt={label} />
  // A data URL would open model output as a page of its own.
  return (
    <p className="millrace-file">
      <SourceLink title={label} url={url} />
    </p>
  )
}

/** A link to where a text of a model leads, or its words where that is no address of the web. The page of Millrace has it, too. */
export function SourceLink({ title, url }: { title: string; url: string | undefined }): ReactNode {
  const safe = url === undefined ? undefined : safeUrl(url)
  if (safe === undefined) return title
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer nofollow">
      {title}
    </a>
  )
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
