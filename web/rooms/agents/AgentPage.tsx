/** One agent: its file in an editor, its steps drawn beside it, and its runs. */
import { lazy, Suspense, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useQuery } from '../../data/query.ts'
import { useResource } from '../../data/resource.ts'
import { api } from '../../data/client.ts'
import { useNarrow } from '../../data/media.ts'
import { useMayEdit } from '../../data/edit-token.ts'
import { chatPlace, keepYaml } from '../../data/own-yaml.ts'
import { useMay, useServer } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { notice } from '../../kit/notice.ts'
import { Panes } from '../../kit/Panes.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { useKeys } from '../../shell/keys.ts'
import { AgentMenu } from './AgentMenu.tsx'
import { AgentRuns } from './AgentRuns.tsx'
import { Drawing } from './Drawing.tsx'
import { Faults } from '../../kit/yaml/Faults.tsx'
import type { Schema } from '../../kit/yaml/schema-options.ts'
import { useAgentFile } from './use-agent-file.ts'
import { useActiveSteps } from './use-active-steps.ts'
import { withFix } from '../../kit/yaml/with-fix.ts'
import css from './Agents.module.css'

const mistaken = 'A file with mistakes is not saved.'

const YamlEditor = lazy(() => import('../../kit/yaml/YamlEditor.tsx'))

export function AgentPage({ id }: { id: string }) {
  const query = useQuery()
  const [, navigate] = useLocation()
  const server = useServer().facts
  const isPhone = useNarrow()
  const mayRead = useMay('agents.read')
  const canEdit = useMayEdit(server?.edit)
  const agent = useAgentFile(id, canEdit)
  const { value: schema } = useResource(mayRead === true ? 'agent-schema' : undefined, (signal) =>
    api<Schema>('/api/agents/schema', { signal }),
  )
  const active = useActiveSteps(id)
  const asked = Number(query.get('line'))
  const [pointed, setPointed] = useState(asked > 0 ? { line: asked } : undefined)
  const [isCompared, setCompared] = useState(false)
  const [cursor, setCursor] = useState<number>()
  const { file, error, text, checked, isChanged, theirs, saving } = agent
  // Users get no file, and no steps to draw.
  const isRuns = query.get('tab') === 'runs' || mayRead === false
  const faults = checked?.faults ?? []
  const tree = checked?.tree ?? file?.tree
  const canSave = canEdit && isChanged && theirs === undefined && !saving.isBusy

  const save = async () => {
    const isSaved = await agent.save()
    if (isSaved) notice('Saved')
    return isSaved
  }
  const goTo = (line: number) => {
    setPointed({ line })
    query.set({ line: String(line), tab: undefined }, { replace: true })
  }
  const chat = `/chat/${encodeURIComponent(id)}`
  useKeys({ 'Mod+s': { label: 'Save the agent', run: () => void (canSave && save()) } }, 'Agent')

  if (file === undefined || (mayRead === undefined && error === undefined)) {
    return error === undefined ? <Skeleton rows={8} /> : <ErrorNote error={error} onRetry={agent.reload} />
  }
  const menu =
    canEdit && file.file !== undefined && file.text !== undefined && file.etag !== undefined
      ? { text: file.text, etag: file.etag }
      : undefined
  const beside = (
    <Button
      {...(isPhone && { look: 'quiet' })}
      icon="columns"
      disabled={file.steps === undefined}
      onClick={() => navigate(`/beside?a=${encodeURIComponent(id)}`)}
    >
      Side by side
    </Button>
  )
  return (
    <div className={css.page}>
      <header className={css.head}>
        <div className={css.name}>
          <h1>
            {file.name ?? id} {file.name !== undefined && file.name !== id && <code>{id}</code>}
          </h1>
          {file.description !== undefined && <p>{file.description}</p>}
          {file.skills !== undefined && (
            <details className={css.skills}>
              <summary>{file.skills.length === 1 ? '1 skill' : `${file.skills.length} skills`}</summary>
              <dl>
                {file.skills.map(({ name, description }) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>{description}</dd>
                  </div>
                ))}
              </dl>
            </details>
          )}
        </div>
        {mayRead !== false && (
          <nav className={css.tabs} aria-label="Of this agent">
            <Link href={`/agents/${encodeURIComponent(id)}`} aria-current={isRuns ? undefined : 'page'}>
              {canEdit ? 'Edit' : 'File'}
            </Link>
            <Link href={`/agents/${encodeURIComponent(id)}?tab=runs`} aria-current={isRuns ? 'page' : undefined}>
              Runs
            </Link>
          </nav>
        )}
        {canEdit && (
          <Button
            look="primary"
            disabled={!canSave || faults.length > 0}
            title={faults.length > 0 ? mistaken : isChanged ? undefined : 'Nothing to save'}
            onClick={() => void save()}
          >
            {saving.isBusy ? 'Saving' : 'Save'}
          </Button>
        )}
        {menu !== undefined && (
          <AgentMenu id={id} {...menu} isChanged={isChanged}>
            {isPhone && beside}
          </AgentMenu>
        )}
        {(!isPhone || menu === undefined) && beside}
        <Button
          disabled={file.steps === undefined || (isChanged && faults.length > 0)}
          title={faults.length > 0 ? 'What has mistakes cannot be tried.' : undefined}
          onClick={() => {
            keepYaml(chatPlace(id), isChanged ? text : undefined)
            navigate(chat)
          }}
        >
          Try
        </Button>
      </header>
      {error !== undefined && <ErrorNote error={error} onRetry={agent.reload} />}
      {saving.error !== undefined && <ErrorNote error={saving.error} onRetry={() => void save()} />}
      {theirs !== undefined && (
        <div className={css.theirs} role="alert">
          <p>The file has changed on disk since you began. The differences are marked: green is yours.</p>
          <Button onClick={agent.takeTheirs}>Take theirs</Button>
          <Button onClick={agent.keepMine}>Keep mine</Button>
        </div>
      )}
      {canEdit && isChanged && theirs === undefined && !isRuns && (
        <div className={css.unsaved}>
          <span>{faults.length === 0 ? 'Unsaved changes' : `Unsaved changes. ${mistaken}`}</span>
          <Button look="quiet" aria-pressed={isCompared} onClick={() => setCompared(!isCompared)}>
            Show changes
          </Button>
          <Button look="quiet" onClick={agent.takeTheirs}>
            Discard
          </Button>
        </div>
      )}
      {isRuns ? (
        <AgentRuns id={id} />
      ) : (
        <Panes
          name="agent"
          label="Steps"
          size={400}
          side={<Drawing tree={tree} active={active} cursor={cursor} onLine={goTo} />}
        >
          {file.text === undefined ? (
            <p className={css.hidden}>The server does not show the file of this agent.</p>
          ) : (
            <div className={css.editor} data-testid="agent-editor">
              <Suspense fallback={<Skeleton rows={8} />}>
                <YamlEditor
                  text={text}
                  onText={agent.write}
                  isReadOnly={!canEdit}
                  faults={faults}
                  schema={schema}
                  pointed={pointed}
                  onLine={setCursor}
                  theirs={theirs ?? (isCompared && isChanged ? file.text : undefined)}
                />
              </Suspense>
            </div>
          )}
          <Faults
            faults={faults}
            state={
              !canEdit
                ? server?.edit === 'token'
                  ? 'no-token'
                  : 'read-only'
                : checked === undefined
                  ? 'unchecked'
                  : isChanged
                    ? 'changed'
                    : 'saved'
            }
            onLine={goTo}
            onFix={(fault) => agent.write(withFix(text, fault))}
          />
        </Panes>
      )}
    </div>
  )
}
