/** The rooms and their paths. Each room is loaded when it is first opened. */
import { lazy, Suspense } from 'react'
import { Route, Switch, useLocation } from 'wouter'
import { useServer } from './data/server.ts'
import { nameInPath } from './shell/places.ts'
import { RoomBoundary } from './shell/RoomBoundary.tsx'
import { rooms, Shell } from './shell/Shell.tsx'
import { Empty, LinkList } from './kit/Empty.tsx'
import { Skeleton } from './kit/Skeleton.tsx'

const ChatRoom = lazy(() => import('./rooms/chat/ChatRoom.tsx'))
const BesideRoom = lazy(() => import('./rooms/chat/beside/BesideRoom.tsx'))
const RunsRoom = lazy(() => import('./rooms/runs/RunsRoom.tsx'))
const RunRoom = lazy(() => import('./rooms/run/RunRoom.tsx'))
const CompareRoom = lazy(() => import('./rooms/compare/CompareRoom.tsx'))
const AgentsRoom = lazy(() => import('./rooms/agents/AgentsRoom.tsx'))
const ThreadsRoom = lazy(() => import('./rooms/threads/ThreadsRoom.tsx'))
const TestsRoom = lazy(() => import('./rooms/tests/TestsRoom.tsx'))
const OverviewRoom = lazy(() => import('./rooms/overview/OverviewRoom.tsx'))

function NoPage() {
  return (
    <Empty title="There is no page here.">
      <p>
        Nothing is at <code>{location.pathname}</code>.
      </p>
      <LinkList links={rooms.map(({ path, label }) => ({ href: path, label }))} />
    </Empty>
  )
}

export function App() {
  const [path] = useLocation()
  const { people } = useServer()
  return (
    <Shell>
      {/* Whoever signs in after somebody else begins anew. */}
      <RoomBoundary key={people} place={path}>
        <Suspense fallback={<Skeleton rows={6} />}>
          <Switch>
            <Route path="/">{() => <ChatRoom agent={undefined} />}</Route>
            <Route path="/chat">{() => <ChatRoom agent={undefined} />}</Route>
            <Route path="/chat/:agent">{() => <ChatRoom agent={nameInPath()} />}</Route>
            <Route path="/beside" component={BesideRoom} />
            <Route path="/runs" component={RunsRoom} />
            <Route path="/runs/:id">{() => <RunRoom key={nameInPath()} id={nameInPath()} />}</Route>
            <Route path="/compare" component={CompareRoom} />
            <Route path="/agents">{() => <AgentsRoom id={undefined} />}</Route>
            <Route path="/agents/:id">{() => <AgentsRoom id={nameInPath()} />}</Route>
            <Route path="/threads">{() => <ThreadsRoom id={undefined} />}</Route>
            <Route path="/threads/:id">{() => <ThreadsRoom id={nameInPath()} />}</Route>
            <Route path="/tests">{() => <TestsRoom id={undefined} />}</Route>
            <Route path="/tests/:id">{() => <TestsRoom id={nameInPath()} />}</Route>
            <Route path="/overview" component={OverviewRoom} />
            <Route>
              <NoPage />
            </Route>
          </Switch>
        </Suspense>
      </RoomBoundary>
    </Shell>
  )
}
