/**
 * The page: starts the session and connects its parts.
 */
import { EngineError, type PlaygroundClient, type StartPlaygroundWeb } from '../engine/api';
import { EventBus } from './bus';
import { lossyText, text } from './bytes';
import { changeSet, directoryOf, pathOf, rootOf, type ChangeSet, type Rendered, type Root } from './changes';
import type { KeptEdits } from './drafts';
import { Edits } from './edits';
import { failure, PageError } from './failure';
import { i18n } from './i18n';
import { hydrate, sessionId, type PageSettings } from './page';
import { shown } from './paths';
import { editableText, Runtime } from './runtime';
import { RUN_TERMINAL_COMMAND, terminalCommand, ToolRegistry } from './tools';
import { ChangesView } from './view/changes';
import { button, code, el, notice, problem } from './view/dom';
import { Editor } from './view/editor';
import { SiteFrame } from './view/frame';
import { KeepView } from './view/keep';
import { Tabs } from './view/tabs';
import { TerminalView } from './view/terminal';
import { FileTree } from './view/tree';

/** Loads the client module; tests pass a fake one. */
export type LoadClient = ( url: string ) => Promise< { startPlaygroundWeb: StartPlaygroundWeb } >;

/** Milliseconds after the last event until the changes are computed again. */
const SETTLE = 150;

export class Workbench {
	readonly events = new EventBus();
	readonly tools = new ToolRegistry();
	private readonly runtime: Runtime;
	private readonly roots: readonly Root[];
	private readonly edits: Edits;
	private readonly frame: SiteFrame;
	private readonly tree: FileTree;
	private readonly editor: Editor;
	private readonly terminal: TerminalView;
	private readonly changesView: ChangesView;
	private readonly keep: KeepView;
	private readonly tabs: Tabs;
	private readonly messages: HTMLElement;
	private client: PlaygroundClient | null = null;
	private timer: ReturnType< typeof setTimeout > | null = null;
	private collecting: Promise< ChangeSet | null > = Promise.resolve( null );
	private storageNoted = false;
	private claimed = false;
	private readonly rendered: Rendered = new Map();

	constructor(
		private readonly settings: PageSettings,
		element: HTMLElement,
		private readonly load: LoadClient
	) {
		this.roots = settings.roots;
		this.terminal = new TerminalView( this.events );
		this.runtime = new Runtime( this.events, {
			mounted: ( path ) => this.terminal.system( `Mounted: ${ path }` ),
			notMounted: ( path, why ) => this.terminal.system( `${ i18n.__( 'Not mounted:', 'codebox' ) } ${ path }: ${ why.message }` ),
			started: ( id, command, args ) => this.terminal.started( id, command, args ),
			changed: () => this.touched(),
		} );
		this.tools.register( RUN_TERMINAL_COMMAND, terminalCommand( this.events, this.runtime ) );
		this.edits = new Edits( sessionId( settings ), settings.roots, ( thrown ) => this.storageFailed( thrown ) );
		this.frame = new SiteFrame( ( thrown ) => this.report( thrown ) );
		this.tree = new FileTree( ( path ) => void this.open( path ) );
		this.editor = new Editor( {
			save: ( path, contents ) => this.save( path, contents ),
			read: async ( path ) => this.read( path ),
			edited: ( path, unsaved ) => this.edits.edited( this.targetOf( path ), unsaved ),
			failed: ( thrown ) => this.report( thrown ),
		} );
		this.changesView = new ChangesView( ( change ) => {
			const path = pathOf( change.target, this.roots );
			if ( path ) {
				this.tabs.show( 'files' );
				void this.open( path );
			}
		} );
		this.keep = new KeepView(
			settings,
			() => this.collectForKeep(),
			( changes ) => this.edits.kept( changes )
		);
		this.tabs = new Tabs( i18n.__( 'Code of the session', 'codebox' ), [
			{ name: 'files', label: i18n.__( 'Files', 'codebox' ), panel: el( 'div', { class: 'wp-codebox-files' }, this.tree.element, this.editor.element ) },
			{ name: 'changes', label: i18n.__( 'Changes', 'codebox' ), panel: el( 'div', { tabindex: 0 }, this.changesView.element ) },
		] );
		this.messages = el( 'div', { class: 'wp-codebox-messages' } );
		element.classList.add( 'wp-codebox-workbench' );
		element.replaceChildren(
			el( 'div', { class: 'wp-codebox-head' }, this.isolationNote(), this.keep.button ),
			this.keep.element,
			this.messages,
			el( 'div', { class: 'wp-codebox-grid' }, this.frame.element, el( 'section', { class: 'wp-codebox-code-box', 'aria-label': i18n.__( 'Code', 'codebox' ) }, this.tabs.element ), this.terminal.element )
		);
		this.terminal.start();
		addEventListener( 'beforeunload', ( event ) => {
			if ( this.edits.atRisk ) {
				event.preventDefault();
			}
		} );
	}

	/** Starts the session. Every failure becomes a sentence in place of the frame. */
	async start(): Promise< void > {
		const again = () => {
			this.frame.reset();
			void this.start();
		};
		try {
			this.frame.progress( 'blueprint-ref', 0 );
			await this.claim();
			const blueprint = await hydrate( this.settings );
			const { startPlaygroundWeb } = await this.load( this.settings.client_module_url ).catch( () => {
				throw new EngineError( 'wp_codebox_browser_asset_missing', i18n.__( 'A file that browser sessions need is missing on this site.', 'codebox' ) );
			} );
			const client = await startPlaygroundWeb( {
				iframe: this.frame.iframe,
				remoteUrl: this.settings.remote_url,
				scope: this.settings.scope,
				blueprint,
				corsProxyUrl: this.settings.cors_proxy_url,
				onProgress: ( { stage, fraction, notice: why } ) => {
					if ( why ) {
						this.terminal.system( `${ why.message }${ why.hint ? ` ${ why.hint }` : '' } (${ why.code })` );
					} else {
						this.frame.progress( stage, fraction );
					}
				},
			} );
			await this.connect( client );
		} catch ( thrown ) {
			const why = failure( thrown );
			this.terminal.system( `${ why.message } (${ why.code })` );
			this.frame.failure( why, again );
		}
	}

	/** Returns the changes now. */
	async changes(): Promise< ChangeSet | null > {
		await this.runtime.idle();
		return this.collect();
	}

	/** Makes this tab the only one of its session: two would replace each other's stored edits. */
	private async claim(): Promise< void > {
		if ( this.claimed || ! navigator.locks ) {
			return;
		}
		// After a reload, the old document may still hold the lock for a moment.
		const signal = AbortSignal.timeout( 3000 );
		await new Promise< void >( ( done, fail ) => {
			navigator.locks
				.request( `wp-codebox-browser-${ sessionId( this.settings ) }`, { signal }, () => {
					this.claimed = true;
					done();
					// The lock ends with the page.
					return new Promise< never >( () => {} );
				} )
				.catch( () =>
					fail( new PageError( 'wp_codebox_browser_session_open', i18n.__( 'This browser session is open in another tab.', 'codebox' ), i18n.__( 'Work there, or close that tab and try again here.', 'codebox' ) ) )
				);
		} );
	}

	private async connect( client: PlaygroundClient ): Promise< void > {
		this.client = client;
		await this.frame.connect( client );
		const stored = await this.edits.stored();
		if ( stored?.own ) {
			await this.restore( client, stored.edits );
		}
		await this.tree.connect( client, this.roots );
		this.runtime.connect(
			client,
			this.roots.map( ( root ) => root.path ),
			directoryOf( this.roots[ 0 ]! )
		);
		if ( stored && ! stored.own ) {
			this.offer( client, stored.edits );
		} else {
			this.edits.resume();
		}
		this.touched();
	}

	/** Opens a file in the editor and announces it on the bus. */
	private async open( path: string ): Promise< void > {
		const { client } = this;
		if ( ! client ) {
			return;
		}
		try {
			const target = this.targetOf( path );
			const bytes = await client.readFileAsBuffer( path );
			const contents = editableText( bytes );
			const unsaved = this.edits.textOf( target );
			this.editor.open( path, this.shown( path ), contents, unsaved );
			this.tree.select( path );
			this.events.emit( { type: 'SYSTEM_FILE_SYNC', payload: { path: this.shown( path ), content: contents ?? lossyText( bytes ), source: 'tree' } } );
		} catch ( thrown ) {
			this.report( thrown );
		}
	}

	private async save( path: string, contents: string ): Promise< void > {
		const { client } = this;
		if ( ! client ) {
			throw new EngineError( 'wp_codebox_browser_closed', i18n.__( 'The site does not run yet.', 'codebox' ), i18n.__( 'Your text stays here; save it when the site runs.', 'codebox' ) );
		}
		await client.writeFile( path, contents );
		this.terminal.system( `Saved: ${ this.shown( path ) }` );
		this.touched();
		void this.frame.reload();
	}

	private async read( path: string ): Promise< string | null > {
		const { client } = this;
		return client && ( await client.fileExists( path ) ) ? text( await client.readFileAsBuffer( path ) ) : null;
	}

	/** Files may have changed: computes the changes when no further event follows for `SETTLE` milliseconds. */
	private touched(): void {
		if ( null !== this.timer ) {
			clearTimeout( this.timer );
		}
		this.timer = setTimeout( () => {
			this.timer = null;
			void this.collect().then( () => Promise.all( [ this.tree.refresh(), this.editor.recheck() ] ) );
		}, SETTLE );
	}

	/** Computes the changes; computations follow each other. */
	private collect(): Promise< ChangeSet | null > {
		this.collecting = this.collecting.then( async () => {
			if ( ! this.client ) {
				return null;
			}
			try {
				const changes = await changeSet( await this.client.changedFiles(), this.roots, this.rendered );
				this.changesView.show( changes );
				this.tree.mark( new Map( changes.files.map( ( change ) => [ pathOf( change.target, this.roots ) ?? '', change.file.status ] ) ) );
				this.tabs.label( 'changes', 0 === changes.files.length ? i18n.__( 'Changes', 'codebox' ) : i18n.sprintf( i18n.__( 'Changes (%s)', 'codebox' ), changes.files.length ) );
				this.edits.set( changes );
				this.keep.offer( changes );
				return changes;
			} catch ( thrown ) {
				this.report( thrown );
				return null;
			}
		} );
		return this.collecting;
	}

	private async collectForKeep(): Promise< ChangeSet | null > {
		await this.editor.save();
		if ( this.editor.isDirty ) {
			this.report( new EngineError( 'wp_codebox_browser_file_failed', i18n.__( 'The open file is not saved.', 'codebox' ), i18n.__( 'Save or revert it, then keep the bundle.', 'codebox' ) ) );
			return null;
		}
		return this.changes();
	}

	private async restore( client: PlaygroundClient, edits: KeptEdits, all = false ): Promise< void > {
		const { written, conflicts, unsaved } = await this.edits.restore( client, this.roots, edits, all );
		const drafts = Object.keys( unsaved ).filter( ( target ) => null !== pathOf( target, this.roots ) );
		if ( written.length + drafts.length > 0 ) {
			this.terminal.system( i18n.sprintf( i18n._n( 'Restored the edits of %s file.', 'Restored the edits of %s files.', written.length + drafts.length, 'codebox' ), written.length + drafts.length ) );
			await this.frame.reload();
		}
		if ( drafts.length > 0 ) {
			this.messages.append(
				notice(
					'warning',
					el( 'p', {}, i18n.__( 'This text was not saved before the page was closed. Open the file to see it:', 'codebox' ) ),
					el( 'p', { class: 'wp-codebox-buttons' }, ...drafts.map( ( target ) => button( target, () => void this.open( pathOf( target, this.roots )! ) ) ) )
				)
			);
		}
		if ( conflicts.length > 0 ) {
			const message = notice(
				'warning',
				el( 'p', {}, i18n.__( 'The code of the site changed since you edited these files. Your edits of them are still stored.', 'codebox' ) ),
				el( 'ul', { class: 'ul-disc' }, ...conflicts.map( ( target ) => el( 'li', {}, code( target ) ) ) ),
				el(
					'p',
					{ class: 'wp-codebox-buttons' },
					button( i18n.__( 'Write my versions', 'codebox' ), async () => {
						message.remove();
						await this.restore( client, edits, true );
						this.touched();
					} )
				)
			);
			this.messages.append( message );
		}
	}

	/** Offers the edits of an earlier session with the same code. */
	private offer( client: PlaygroundClient, edits: KeptEdits ): void {
		const decide = ( act: () => Promise< void > ) => async () => {
			message.remove();
			await act();
			this.edits.resume();
			this.touched();
		};
		const count = edits.files.length + Object.keys( edits.unsaved ).length;
		const message = notice(
			'info',
			el(
				'p',
				{},
				i18n.sprintf(
					i18n._n( 'This browser has edits of %1$s file from a session of %2$s that are in no bundle.', 'This browser has edits of %1$s files from a session of %2$s that are in no bundle.', count, 'codebox' ),
					count,
					new Date( edits.time ).toLocaleString()
				)
			),
			el(
				'p',
				{ class: 'wp-codebox-buttons' },
				button(
					i18n.__( 'Restore them', 'codebox' ),
					decide( async () => {
						await this.restore( client, edits );
						await this.edits.discard( edits );
					} )
				),
				button(
					i18n.__( 'Delete them', 'codebox' ),
					decide( () => this.edits.discard( edits ) )
				),
				button(
					i18n.__( 'Not now', 'codebox' ),
					decide( () => Promise.resolve() )
				)
			)
		);
		this.messages.append( message );
		this.edits.resume();
	}

	private isolationNote(): HTMLElement {
		if ( 'separate-host' === this.settings.isolation ) {
			return el( 'p', { class: 'wp-codebox-note' }, i18n.__( 'A WordPress that exists only in this browser. Its pages have a host name of their own, so REST, AJAX and the block editor work. Nothing here changes your site.', 'codebox' ) );
		}
		return el(
			'details',
			{ class: 'wp-codebox-note' },
			el( 'summary', {}, i18n.__( 'A WordPress that exists only in this browser. Nothing here changes your site. Some things do not work.', 'codebox' ) ),
			el( 'p', {}, i18n.__( 'Its pages are isolated from this site: they cannot read its cookies, its storage or your login. Therefore these do not work in it:', 'codebox' ) ),
			el(
				'ul',
				{ class: 'ul-disc' },
				el( 'li', {}, i18n.__( 'REST requests and AJAX, so also the block editor', 'codebox' ) ),
				el( 'li', {}, i18n.__( 'cookies, and data that a script stores for the next page', 'codebox' ) ),
				el( 'li', {}, i18n.__( 'requests to other hosts, such as updates, mail and avatars', 'codebox' ) )
			),
			el( 'p', {}, i18n.__( 'Pages, forms, the dashboard and edited styles and scripts work. An administrator can configure a separate host, on which REST and the block editor work as well.', 'codebox' ) ),
			this.settings.docs_url ? el( 'p', {}, el( 'a', { href: this.settings.docs_url, target: '_blank', rel: 'noopener' }, i18n.__( 'More about browser sessions', 'codebox' ) ) ) : null
		);
	}

	private storageFailed( thrown: unknown ): void {
		if ( ! this.storageNoted ) {
			this.storageNoted = true;
			this.messages.append( problem( failure( thrown ) ) );
		}
	}

	/** Shows an error until the next one. */
	private report( thrown: unknown ): void {
		const shownBefore = this.messages.querySelector( '.is-report' );
		const message = problem( failure( thrown ) );
		message.classList.add( 'is-report' );
		message.append( el( 'p', {}, button( i18n.__( 'Dismiss', 'codebox' ), () => message.remove() ) ) );
		if ( shownBefore ) {
			shownBefore.replaceWith( message );
		} else {
			this.messages.append( message );
		}
	}

	/** Returns the name below wp-content of a path; outside of the roots, the path itself. */
	private targetOf( path: string ): string {
		const root = rootOf( path, this.roots );
		return root ? root.target + path.slice( root.path.length ) : path;
	}

	private shown( path: string ): string {
		return shown( path, directoryOf( this.roots[ 0 ]! ) );
	}
}
