/**
 * The terminal: shows every event as it happens, and runs commands that are typed.
 *
 * xterm.js draws it. A plain list of the same lines is one button away, and takes its place when xterm.js cannot start.
 */
import { Terminal as XTerm } from '@xterm/xterm';
import type { EventBus } from '../bus';
import { CommandLineError, words } from '../command-line';
import { failure } from '../failure';
import { i18n } from '../i18n';
import { button, el, on } from './dom';

/** Number of characters that the plain list keeps. */
const MAX_PLAIN = 400_000;
/** As in workbench.css. */
const FONT = 'Menlo, Consolas, "DejaVu Sans Mono", monospace';
const COLOURS = { system: '36', command: '1', stderr: '31', quiet: '90' } as const;

/** Removes escape sequences and control characters, for the plain list. */
export function plain( data: string ): string {
	return data
		.replace( /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?/g, '' )
		.replace( /\x1b\[[0-?]*[ -/]*[@-~]/g, '' )
		.replace( /\x1b[@-_]?/g, '' )
		.replace( /\r\n?/g, '\n' )
		.replace( /[\x00-\x08\x0b-\x1f\x7f]/g, '' );
}

export class TerminalView {
	readonly element: HTMLElement;
	private readonly screen: HTMLElement;
	private readonly list: HTMLElement;
	private readonly input: HTMLInputElement;
	private readonly toggle: HTMLButtonElement;
	private readonly note: HTMLElement;
	private xterm: XTerm | null = null;
	private readonly history: string[] = [];
	private historyAt = 0;
	/** Whether the last output ended without a line feed. */
	private openLine = false;
	private wroteFor = '';
	private isReady = false;

	constructor( private readonly bus: EventBus ) {
		this.screen = el( 'div', { class: 'wp-codebox-screen-box', dir: 'ltr' } );
		this.list = el( 'pre', { class: 'wp-codebox-log', role: 'log', 'aria-label': i18n.__( 'Output of the terminal', 'codebox' ), tabindex: 0, dir: 'ltr', hidden: true } );
		this.toggle = button( i18n.__( 'Show as plain text', 'codebox' ), () => this.showPlain( this.list.hidden ), { class: 'button button-small', 'aria-pressed': 'false' } );
		this.note = el( 'p', { class: 'wp-codebox-terminal-note', role: 'alert' } );
		this.input = on( el( 'input', { type: 'text', class: 'wp-codebox-command', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', dir: 'ltr', 'aria-label': i18n.__( 'Command', 'codebox' ), placeholder: 'ls -la' } ), {
			keydown: ( event ) => this.recall( event ),
		} );
		const form = on( el( 'form', { class: 'wp-codebox-prompt' }, el( 'span', { 'aria-hidden': 'true' }, '$' ), this.input, el( 'button', { type: 'submit', class: 'button' }, i18n.__( 'Run', 'codebox' ) ) ), {
			submit: ( event ) => {
				event.preventDefault();
				this.run();
			},
		} );
		this.element = el(
			'section',
			{ class: 'wp-codebox-terminal', 'aria-label': i18n.__( 'Terminal', 'codebox' ) },
			el( 'div', { class: 'wp-codebox-bar' }, el( 'h2', {}, i18n.__( 'Terminal', 'codebox' ) ), el( 'span', { class: 'wp-codebox-bar-end' }, this.toggle ) ),
			this.screen,
			this.list,
			this.note,
			form
		);
		// Before the site runs, files and commands wait; the terminal shows that they are there.
		const waits = ( what: string ) => ! this.isReady && this.line( `[System] ${ i18n.__( 'Waiting for the site:', 'codebox' ) } ${ what }`, 'quiet' );
		bus.subscribe( 'SYSTEM_FILE_SYNC', ( { event: { payload } } ) => waits( payload.path ), { observer: true } );
		bus.subscribe( 'AGENT_EXEC_CMD', ( { event: { payload } } ) => waits( [ payload.command, ...( payload.args ?? [] ) ].join( ' ' ) ), { observer: true } );
		bus.subscribe( 'RUNTIME_OUTPUT', ( { event: { payload } } ) => this.output( payload.executionId, payload.stream, payload.data ), { observer: true } );
		bus.subscribe( 'RUNTIME_EXIT', ( { event: { payload } } ) => this.line( `[${ payload.executionId }] ${ i18n.sprintf( i18n.__( 'exit status %s', 'codebox' ), payload.exitCode ) }`, 'quiet' ), { observer: true } );
		bus.subscribe(
			'RUNTIME_READY',
			() => {
				this.isReady = true;
				this.line( `[System] ${ i18n.__( 'Ready', 'codebox' ) }`, 'system' );
			},
			{ observer: true }
		);
	}

	/** Starts xterm.js; the element must be in the document. */
	start(): void {
		try {
			const xterm = new XTerm( {
				convertEol: true,
				disableStdin: true,
				cursorInactiveStyle: 'none',
				fontSize: 13,
				fontFamily: FONT,
				scrollback: 5000,
				screenReaderMode: true,
				theme: { background: '#1d2327', foreground: '#f0f0f1', cyan: '#72d0d4', red: '#ff9b93', brightBlack: '#a7aaad' },
				// Output of a sandbox must not open pages.
				linkHandler: { activate: () => {} },
			} );
			xterm.open( this.screen );
			this.xterm = xterm;
			if ( this.list.textContent ) {
				xterm.write( this.list.textContent );
			}
			new ResizeObserver( () => this.fit() ).observe( this.screen );
			this.fit();
		} catch {
			this.showPlain( true );
			this.toggle.hidden = true;
		}
	}

	/** Announces that a command starts. */
	started( executionId: string, command: string, args: readonly string[] ): void {
		const word = ( text: string ) => ( /^[\w./:=@%+,-]+$/.test( text ) ? text : `'${ text.replaceAll( "'", "'\\''" ) }'` );
		this.line( `[${ executionId }] $ ${ [ command, ...args ].map( word ).join( ' ' ) }`, 'command' );
	}

	/** Writes a line of the page itself. */
	system( text: string ): void {
		this.line( `[System] ${ text }`, 'system' );
	}

	/** Everything that was written, without colours. */
	get text(): string {
		return this.list.textContent ?? '';
	}

	private output( executionId: string, stream: 'stdout' | 'stderr', data: string ): void {
		if ( this.openLine && executionId !== this.wroteFor ) {
			this.write( '\n' );
		}
		this.wroteFor = executionId;
		this.write( data, 'stderr' === stream ? 'stderr' : null );
		this.openLine = '' !== data && ! data.endsWith( '\n' );
	}

	private line( text: string, colour: keyof typeof COLOURS ): void {
		if ( this.openLine ) {
			this.write( '\n' );
		}
		// A path or an argument must not bring escape sequences of its own.
		this.write( plain( text ).replaceAll( '\n', ' ' ) + '\n', colour );
		this.openLine = false;
	}

	private write( data: string, colour: keyof typeof COLOURS | null = null ): void {
		this.xterm?.write( colour ? `\x1b[${ COLOURS[ colour ] }m${ data }\x1b[0m` : data );
		const atEnd = this.list.scrollTop + this.list.clientHeight >= this.list.scrollHeight - 4;
		this.list.append( plain( data ) );
		if ( this.text.length > MAX_PLAIN ) {
			this.list.textContent = this.text.slice( -MAX_PLAIN / 2 );
		}
		if ( atEnd ) {
			this.list.scrollTop = this.list.scrollHeight;
		}
	}

	private run(): void {
		const typed = this.input.value;
		this.note.textContent = '';
		try {
			const [ command, ...args ] = words( typed );
			if ( undefined === command ) {
				return;
			}
			this.history.push( typed );
			this.historyAt = this.history.length;
			this.input.value = '';
			this.bus.emit( { type: 'AGENT_EXEC_CMD', payload: { command, args } } );
		} catch ( thrown ) {
			if ( ! ( thrown instanceof CommandLineError ) ) {
				throw thrown;
			}
			this.note.textContent = failure( thrown ).message;
		}
	}

	private recall( event: KeyboardEvent ): void {
		const step = { ArrowUp: -1, ArrowDown: 1 }[ event.key ];
		if ( undefined === step || 0 === this.history.length ) {
			return;
		}
		event.preventDefault();
		this.historyAt = Math.min( Math.max( this.historyAt + step, 0 ), this.history.length );
		this.input.value = this.history[ this.historyAt ] ?? '';
	}

	private showPlain( shown: boolean ): void {
		this.list.hidden = ! shown;
		this.screen.hidden = shown;
		this.toggle.setAttribute( 'aria-pressed', String( shown ) );
		if ( shown ) {
			this.list.scrollTop = this.list.scrollHeight;
		} else {
			this.fit();
		}
	}

	/** Sets columns and rows to the size of the element. */
	private fit(): void {
		const { xterm, screen } = this;
		if ( ! xterm || 0 === screen.clientWidth ) {
			return;
		}
		// Measure the size of a character here: elements of xterm.js change their size only with a delay.
		const probe = el( 'span', { class: 'wp-codebox-probe', 'aria-hidden': 'true' }, 'W'.repeat( 50 ) );
		screen.append( probe );
		const { width, height } = probe.getBoundingClientRect();
		probe.remove();
		// 24 pixels for padding and scroll bar.
		const columns = Math.max( 20, Math.floor( ( screen.clientWidth - 24 ) / ( width / 50 ) ) );
		const rows = Math.max( 5, Math.floor( ( screen.clientHeight - 8 ) / Math.ceil( height ) ) );
		if ( width > 0 && ( columns !== xterm.cols || rows !== xterm.rows ) ) {
			xterm.resize( columns, rows );
		}
	}
}
