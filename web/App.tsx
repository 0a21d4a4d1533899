/** The rooms and their paths. Each room is loaded when it is first opened. */
import { lazy, Suspense } from 'react'
import { Route, Switch } from 'wouter'
import { RoomBoundary } from './shell/RoomBoundary.tsx'
import { Shell } from './shell/Shell.tsx'
import { Empty } from './kit/Empty.tsx'
import { Skeleton } from './kit/Skeleton.tsx'

const ChatRoom = lazy(() => import('./rooms/chat/ChatRoom.tsx'))
const RunsRoom = lazy(() => import('./rooms/runs/RunsRoom.tsx'))
const RunRoom = lazy(() => import('./rooms/run/RunRoom.tsx'))
const CompareRoom = lazy(() => import('./rooms/compare/CompareRoom.tsx'))
const AgentsRoom = lazy(() => import('./rooms/agents/AgentsRoom.tsx'))
const ThreadsRoom = lazy(() => import('./rooms/threads/ThreadsRoom.tsx'))
const OverviewRoom = lazy(() => import('./rooms/overview/OverviewRoom.tsx'))

export function App() {
  return (
    <Shell>
      <RoomBoundary>
        <Suspense fallback={<Skeleton rows={6} />}>
          <Switch>
            <Route path="/">{() => <ChatRoom agent={undefined} />}</Route>
            <Route path="/chat/:agent">{({ agent }) => <ChatRoom agent={agent} />}</Route>
            <Route path="/runs" component={RunsRoom} />
            <Route path="/runs/:id">{({ id }) => <RunRoom key={id} id={id} />}</Route>
            <Route path="/compare" component={CompareRoom} />
            <Route path="/agents">{() => <AgentsRoom id={undefined} />}</Route>
            <Route path="/agents/:id">{({ id }) => <AgentsRoom id={id} />}</Route>
            <Route path="/threads">{() => <ThreadsRoom id={undefined} />}</Route>
            <Route path="/threads/:id">{({ id }) => <ThreadsRoom id={id} />}</Route>
            <Route path="/overview" component={OverviewRoom} />
            <Route>
              <Empty title="There is nothing at this address.">
                The rail on the left leads to everything that there is.
              </Empty>
            </Route>
          </Switch>
        </Suspense>
      </RoomBoundary>
    </Shell>
  )
}
