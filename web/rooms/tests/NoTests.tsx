import { useLocation } from 'wouter'
import { useMay, useServer } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { Empty } from '../../kit/Empty.tsx'
import css from './Tests.module.css'

/** Nothing here yet: what a test is, and how the first one is made. */
export function NoTests({ mayAdd }: { mayAdd: boolean }) {
  const [, navigate] = useLocation()
  const { facts } = useServer()
  const isAdmin = useMay('tests.edit')
  return (
    <Empty title="There are no tests yet.">
      <div className={css.empty}>
        <p>
          A test is a run that is played again: its recording answers for the models, so it costs nothing, and it fails
          when the answer or the calls of tools are no longer what you expect.
        </p>
        {mayAdd ? (
          <>
            <p>
              Open a run that you are content with, or one that must never happen again, and choose <b>Add as test</b>.
            </p>
            <Button look="primary" onClick={() => navigate('/runs')}>
              Choose a run
            </Button>
          </>
        ) : (
          <p>
            {isAdmin === true && facts?.edit === false
              ? 'Adding one writes a file. To allow it, set server.edit in the config, or use millrace test --add <run>.'
              : 'People who may edit agents here can add them.'}
          </p>
        )}
      </div>
    </Empty>
  )
}
