/** What is done with an agent's file as a whole: duplicate, rename, delete. */
import { useId, useState, type ReactNode } from 'react'
import { useLocation } from 'wouter'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { Menu } from '../../kit/Menu.tsx'
import { notice } from '../../kit/notice.ts'
import { removeAgent, renameAgent, saveAgent } from './agent-api.ts'
import { idFor } from './templates.ts'
import form from './NewAgent.module.css'
import css from './AgentMenu.module.css'

interface Props {
  id: string
  /** As it is on disk. */
  text: string
  etag: string
  /** A draft is not saved: it would be lost. */
  isChanged: boolean
  /** Stands above. */
  children: ReactNode
}

type Ask = 'duplicate' | 'rename' | 'delete'

const titles = { duplicate: 'Duplicate this agent', rename: 'Rename this agent', delete: 'Delete this agent?' }

export function AgentMenu({ id, text, etag, isChanged, children }: Props) {
  const [ask, setAsk] = useState<Ask>()
  const item = (what: Ask, word: string, look?: 'danger') => (
    <Button
      look={look ?? 'quiet'}
      disabled={isChanged}
      title={isChanged ? 'Save or discard the changes first' : undefined}
      onClick={() => setAsk(what)}
    >
      {word}
    </Button>
  )
  return (
    <>
      <Menu label="More">
        {children}
        {item('duplicate', 'Duplicate')}
        {item('rename', 'Rename')}
        {item('delete', 'Delete', 'danger')}
      </Menu>
      <Dialog isOpen={ask !== undefined} title={ask === undefined ? '' : titles[ask]} onClose={() => setAsk(undefined)}>
        {ask === 'delete' && <Doomed id={id} etag={etag} onClose={() => setAsk(undefined)} />}
        {(ask === 'rename' || ask === 'duplicate') && <NewName key={ask} id={id} text={text} etag={etag} ask={ask} />}
      </Dialog>
    </>
  )
}

function NewName({ id, text, etag, ask }: Pick<Props, 'id' | 'text' | 'etag'> & { ask: Ask }) {
  const field = useId()
  const [, navigate] = useLocation()
  const [name, setName] = useState(ask === 'duplicate' ? `${id}-copy` : id)
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const to = idFor(name)
  const isSame = to === '' || to === id
  const act = async () => {
    if (isSame || isBusy) return
    setBusy(true)
    setError(undefined)
    try {
      await (ask === 'rename' ? renameAgent(id, to, etag) : saveAgent(to, text, undefined))
      notice(ask === 'rename' ? 'Renamed' : 'Duplicated')
      navigate(`/agents/${encodeURIComponent(to)}`)
    } catch (fault) {
      setBusy(false)
      setError(fault)
    }
  }
  return (
    <form
      className={form.form}
      onSubmit={(event) => {
        event.preventDefault()
        void act()
      }}
    >
      <label htmlFor={field}>New id</label>
      <input
        id={field}
        value={name}
        autoComplete="off"
        maxLength={80}
        aria-describedby={`${field}-about`}
        onChange={(event) => setName(event.target.value)}
      />
      <p id={`${field}-about`} className={form.file}>
        {isSame ? 'Choose another one.' : `Its file: ${to}.yaml.`}
        {ask === 'rename' && ` Its runs and conversations keep the name ${id}.`}
      </p>
      {error !== undefined && <ErrorNote error={error} />}
      <div className={form.answer}>
        <Button look="primary" type="submit" disabled={isSame || isBusy}>
          {ask === 'rename' ? 'Rename' : 'Duplicate'}
        </Button>
      </div>
    </form>
  )
}

function Doomed({ id, etag, onClose }: Pick<Props, 'id' | 'etag'> & { onClose(): void }) {
  const [, navigate] = useLocation()
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const remove = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await removeAgent(id, etag)
      notice('Deleted')
      navigate('/agents')
    } catch (fault) {
      setBusy(false)
      setError(fault)
    }
  }
  return (
    <div className={form.form}>
      <p className={css.doomed}>The file of “{id}” will be gone for good. Its runs and conversations stay.</p>
      {error !== undefined && <ErrorNote error={error} />}
      <div className={form.answer}>
        <Button onClick={onClose}>Keep it</Button>
        <Button look="danger" disabled={isBusy} onClick={() => void remove()}>
          Delete
        </Button>
      </div>
    </div>
  )
}
