import { addLooks } from '../../base/draw';
import { STAGE_LOOKS } from '../retraces/layout';

/** Compile time is one grey; its stage is the pattern: capture open, passes and planning lined, quick tier half full, good tier full. */
export function addCompileLooks(): void {
  addLooks({
    ...STAGE_LOOKS,
    statement: { ink: 'compile', ground: 'sunk', dash: [2, 2] },
    copy: { ink: 'compile', ground: 'sunk' },
    trace: { ink: 'compile', ground: 'sunk' },
    retrace: { ink: 'retrace' },
    quick: {
      ink: 'compile',
      paint: (context, { x, y, width, height }, grey) => {
        context.fillStyle = grey;
        context.fillRect(x, y + height / 2, width, height / 2);
      }
    },
    load: { ink: 'compile', dash: [2, 2] }
  });
}
