/**
 * Connects the event bus to a running WordPress: writes synchronised files and runs commands.
 *
 * Files and commands share one queue, so that a command sees every file that was synchronised before it.
 */
import type { PlaygroundClient } from '../engine/api';
import type { Envelope, EventBus } from './bus';
import { lossyText, text } from './bytes';
import { failure, type Failure } from './failure';
import { directory, resolve, shown } from './paths';

/** Callbacks with which the runtime reports to the page. */
export interface RuntimeObserver {
	/** A file is in the sandbox. */
	mounted( path: string ): void;
	/** A file could not be written. Its contents stay in the event. */
	notMounted( path: string, why: Failure ): void;
	/** A command starts. */
	started( executionId: string, command: string, args: readonly string[] ): void;
	/** Files may have changed. */
	changed(): void;
}

export class Runtime {
	private queue: Promise< unknown > = Promise.resolve();
	private readonly ends: Array< () => void > = [];
	private executions = 0;
	private readonly run = Math.random().toString( 36 ).slice( 2, 8 );

	constructor(
		private readonly bus: EventBus,
		private readonly observer: RuntimeObserver
	) {}

	/** Returns an execution id that no other command of this page has. */
	executionId(): string {
		this.executions += 1;
		return `exec-${ this.run }-${ this.executions }`;
	}

	/** Takes the events that wait, then all further ones. `roots` are absolute paths; `base` is the working directory, the first root by default. */
	connect( client: PlaygroundClient, roots: readonly string[], base: string = roots[ 0 ] ?? '/wordpress' ): void {
		const take = ( job: () => Promise< void > ) => {
			this.queue = this.queue.then( job );
		};
		this.ends.push(
			this.bus.subscribe( 'SYSTEM_FILE_SYNC', ( envelope ) => take( () => this.mount( client, base, envelope ) ) ),
			this.bus.subscribe( 'AGENT_EXEC_CMD', ( envelope ) => take( () => this.execute( client, base, envelope ) ) )
		);
		this.bus.emit( { type: 'RUNTIME_READY', payload: { roots, execution: 'browser-playground' } } );
	}

	/** Stops taking events; later ones wait for the next `connect()`. */
	disconnect(): void {
		this.ends.splice( 0 ).forEach( ( end ) => end() );
	}

	/** Resolves when everything that was emitted so far is done. */
	async idle(): Promise< void > {
		await this.queue;
	}

	private async mount( client: PlaygroundClient, base: string, { event: { payload } }: Envelope< 'SYSTEM_FILE_SYNC' > ): Promise< void > {
		try {
			const path = resolve( payload.path, base );
			// A file that was opened from the tree is already there. Writing it could undo what a command changed meanwhile.
			if ( 'tree' !== payload.source || ! ( await client.fileExists( path ) ) ) {
				await client.mkdirTree( directory( path ) );
				await client.writeFile( path, payload.content );
				this.observer.changed();
			}
			this.observer.mounted( shown( path, base ) );
		} catch ( thrown ) {
			this.observer.notMounted( payload.path, failure( thrown ) );
		}
	}

	private async execute( client: PlaygroundClient, base: string, { event: { payload } }: Envelope< 'AGENT_EXEC_CMD' > ): Promise< void > {
		const executionId = payload.executionId ?? this.executionId();
		const args = [ ...( payload.args ?? [] ) ];
		const output = ( stream: 'stdout' | 'stderr', data: string ) => this.bus.emit( { type: 'RUNTIME_OUTPUT', payload: { executionId, stream, data } } );
		this.observer.started( executionId, payload.command, args );
		try {
			const { exitCode } = await client.exec( payload.command, args, { cwd: base, executionId, onOutput: ( piece ) => output( piece.stream, piece.data ) } );
			this.bus.emit( { type: 'RUNTIME_EXIT', payload: { executionId, exitCode } } );
		} catch ( thrown ) {
			const { code, message, hint } = failure( thrown );
			output( 'stderr', `${ message }${ hint ? ` ${ hint }` : '' }\n` );
			// 127 is the exit status of a shell for a command that it does not find.
			const exitCode = 'wp_codebox_browser_command_unsupported' === code ? 127 : 1;
			this.bus.emit( { type: 'RUNTIME_EXIT', payload: { executionId, exitCode, error: { code, message } } } );
		}
		this.observer.changed();
	}
}

/** Contents of a file as the page shows them: text, or null for what no text editor can keep unchanged. */
export function editableText( bytes: Uint8Array ): string | null {
	const decoded = text( bytes );
	return null === decoded || decoded.includes( '\0' ) ? null : decoded;
}

export { lossyText };
