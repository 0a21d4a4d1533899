/** Whose a run or a thread is, for those who see the runs of others. The tenant is shown to who sees several. */
import { useSignedIn } from '../data/server.ts'
import css from './Owner.module.css'

interface Props {
  owner: string | undefined
  tenant: string | undefined
}

export function Owner({ owner, tenant }: Props) {
  const user = useSignedIn()
  if (owner === undefined) return null
  const shown = tenant !== user?.tenant ? tenant : undefined
  return (
    <span className={css.owner} title={shown === undefined ? owner : `${owner}, tenant ${shown}`}>
      {owner}
      {shown !== undefined && <small> {shown}</small>}
    </span>
  )
}
